"""The fleet: runs are listed, marked, paused and resumed by name, opened, and come back from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.pilot import Pilot

from atropos_tui.errors import UsageError
from atropos_tui.monitor.fleet import FleetRun, Presence
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.fleet import FleetPane, FleetScreen
from atropos_tui.ui.leaving import DETACH
from atropos_tui.ui.quit import QuitScreen
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui import recorded
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource, running
from tests.ui.recorded_fleet import RecordedFleet, fleet_runs
from tests.ui.screen_steps import SIZE, asked, known, painted


class TestFleet:
    async def opened(self, pilot: Pilot[Any]) -> tuple[ListenedApp, FleetPane]:
        app = await known(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        return app, app.screen.query_one(FleetPane)

    async def test_capital_f_opens_it_from_any_screen_and_it_asks_the_runs_only_while_it_is_open(
        self, make_app: MakeApp
    ) -> None:
        fleet = RecordedFleet()
        app = make_app(fleet=fleet)
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            for key in ("l", "e", "c"):
                await pilot.press(key, "F")
                await until(pilot, lambda: isinstance(app.screen, FleetScreen) and fleet.watched == 1)
                await pilot.press("escape")
                await until(pilot, lambda: isinstance(app.screen, DashboardScreen) and fleet.watched == 0)

    async def test_without_other_runs_it_says_so(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("F")
            assert app.said == ["there are no other runs to show here"]

    async def test_p_names_the_run_under_the_cursor_and_pauses_it_alone(self, make_app: MakeApp) -> None:
        fleet = RecordedFleet()
        app = make_app(fleet=fleet)
        async with app.run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            await pilot.press("j", "p")
            name = pane.runs[1].name
            assert f"Pause {name}?" in await asked(pilot)
            await pilot.press("y")
            await until(pilot, lambda: fleet.commands == [("pause", name)])
            await until(pilot, lambda: app.said == ["paused: 1 run of 1"])

    async def test_marked_runs_are_all_named_and_those_that_refuse_say_why(self, make_app: MakeApp) -> None:
        fleet = RecordedFleet()
        app = make_app(fleet=fleet)
        async with app.run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            await pilot.press("m", "m", "r")
            first, second = pane.runs[0], pane.runs[1]
            fleet.refusals[second.key] = "the worker refused: this run is read-only"
            question = await asked(pilot)
            assert "Resume 2 runs?" in question
            assert first.name in question
            assert second.name in question
            await pilot.press("y")
            await until(pilot, lambda: fleet.commands == [("resume", first.name), ("resume", second.name)])
            refusal = f"{second.name}: the worker refused: this run is read-only"
            await until(pilot, lambda: app.said == [refusal, "resumed: 1 run of 2"])
            assert pane.marked == set()

    async def test_capital_a_marks_all_that_answer_and_then_none(self, make_app: MakeApp) -> None:
        async with make_app(fleet=RecordedFleet()).run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            await pilot.press("A")
            assert pane.marked == {run.key for run in fleet_runs() if run.answers}
            await pilot.press("p")
            question = await asked(pilot)
            assert "Pause 5 runs?" in question
            assert "http://node17:7777" not in question
            await pilot.press("n")
            await until(pilot, lambda: isinstance(pilot.app.screen, FleetScreen))
            await pilot.press("A")
            assert pane.marked == set()

    async def test_a_run_that_does_not_answer_is_not_commanded(self, make_app: MakeApp) -> None:
        fleet = RecordedFleet([run for run in fleet_runs() if run.presence is Presence.SILENT])
        app = make_app(fleet=fleet)
        async with app.run_test(size=SIZE) as pilot:
            await self.opened(pilot)
            await pilot.press("p")
            assert app.said == ["nothing to pause, for want of an answer: http://node17:7777"]

    async def test_x_leaves_out_the_runs_that_ended(self, make_app: MakeApp) -> None:
        async with make_app(fleet=RecordedFleet()).run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            everything = pane.rows
            await pilot.press("x")
            assert pane.rows == everything - 2
            assert "2 ended, left out" in painted(pane)
            await pilot.press("x")
            assert pane.rows == everything

    async def test_enter_opens_a_run_and_the_fleet_leads_back(self, make_app: MakeApp) -> None:
        opened: list[str] = []
        other = RecordedSource(replace(running(), run=replace(running().run, environment="gsm8k")))

        def open_run(run: FleetRun) -> RecordedSource:
            opened.append(run.name)
            return other

        home = RecordedSource(running())
        app = make_app(source=home, fleet=RecordedFleet(), open_run=open_run)
        async with app.run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            wanted = pane.runs[2].name
            await pilot.press("j", "j", "enter")
            await until(pilot, lambda: app.moment.snapshot.run.environment == "gsm8k")
            assert opened == [wanted]
            assert isinstance(app.screen, DashboardScreen)
            await pilot.press("p")
            await until(pilot, lambda: other.commands == ["pause"])
            assert home.commands == []
            await pilot.press("q")
            await until(pilot, lambda: isinstance(app.screen, QuitScreen))
            # The answer concerns the run the screen was started with, so that only leaving is offered.
            assert "stop" not in painted(app.screen.query_one("#quit-dialog", Canvas))
            await pilot.press("escape", "F")
            await until(pilot, lambda: isinstance(app.screen, FleetScreen))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
            assert app.source is other
            home.play(running())
            await pilot.press("escape")
            await until(pilot, lambda: app.moment.snapshot.run.environment == "reverse_strings")
            assert app.source is home
            await until(pilot, lambda: "close" in other.commands)
            assert "close" not in home.commands

    async def test_a_run_that_is_still_open_at_the_end_is_closed_and_the_home_is_left_to_its_owner(
        self, make_app: MakeApp
    ) -> None:
        home, other = RecordedSource(running()), RecordedSource(running())
        app = make_app(source=home, fleet=RecordedFleet(), open_run=lambda run: other)
        async with app.run_test(size=SIZE) as pilot:
            await self.opened(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: app.source is other)
        await app.close_opened()
        assert (other.commands, home.commands) == (["close"], [])

    async def test_a_run_that_cannot_be_opened_says_why_and_the_one_before_stays(self, make_app: MakeApp) -> None:
        def open_run(run: FleetRun) -> RecordedSource:
            raise UsageError(f"there is no run file in {run.name}", "it was not recorded")

        app = make_app(fleet=RecordedFleet(), open_run=open_run)
        async with app.run_test(size=SIZE) as pilot:
            await self.opened(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: "there is no run file" in "".join(app.said))
            assert app.moment.snapshot.run.environment == "reverse_strings"

    async def test_an_app_without_a_run_begins_with_the_fleet_and_escape_leads_back_to_it(
        self, make_app: MakeApp
    ) -> None:
        app = ListenedApp(
            None, fleet=RecordedFleet(), open_run=lambda run: RecordedSource(running()), on_quit=(DETACH,),
            clock=lambda: 0.0, wall_clock=lambda: recorded.NOW, theme="dusk",
        )  # fmt: skip
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: isinstance(app.screen, FleetScreen))
            await pilot.press("escape", "t", "l", "c")
            assert isinstance(app.screen, FleetScreen)
            assert app.said == ["no run is open: choose one here with enter"] * 3
            await pilot.press("enter")
            await until(pilot, lambda: app.moment.known and isinstance(app.screen, DashboardScreen))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, FleetScreen))

    async def test_news_of_a_run_is_painted_and_the_cursor_stays_on_its_run(self, make_app: MakeApp) -> None:
        fleet = RecordedFleet()
        async with make_app(fleet=fleet).run_test(size=SIZE) as pilot:
            _, pane = await self.opened(pilot)
            await pilot.press("j", "j")
            stuck = pane.run
            assert stuck is not None
            fleet.show(replace(stuck, presence=Presence.SILENT, why="no answer within 5 s"))
            await until(pilot, lambda: "no answer within 5 s" in painted(pane))
