"""The keys of fleet, configuration, queue, evaluations, alerts and logs; and those that ask before they act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.app import SystemCommand
from textual.pilot import Pilot

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.snapshot import Alert
from atropos_tui.ui.alerts import AlertsScreen
from atropos_tui.ui.config import ConfigPane, ConfigScreen
from atropos_tui.ui.confirm import ConfirmScreen
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.evals import EvalsPane
from atropos_tui.ui.fleet import FleetScreen
from atropos_tui.ui.ink import Line
from atropos_tui.ui.keys import Scope, commands
from atropos_tui.ui.logs import LogsPane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.queue import Order, QueuePane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.user_files import UserFiles
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui import recorded
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import RecordedSource, paused, running
from tests.ui.recorded_fleet import RecordedFleet
from tests.ui.screen_steps import SIZE, asked, known, painted


class TestCommandsThatAsk:
    async def test_capital_p_pauses_now_once_it_was_confirmed(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        async with make_app(source=source).run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("P")
            question = await asked(pilot)
            assert "Pause reverse_strings now?" in question
            assert "32 groups in flight go back; what they sampled is lost" in question
            await pilot.press("y")
            await until(pilot, lambda: source.commands == ["pause now"])

    @pytest.mark.parametrize("key", ["n", "escape", "q"])
    async def test_no_closes_the_question_and_nothing_is_sent(self, make_app: MakeApp, key: str) -> None:
        source = RecordedSource(running())
        app = make_app(source=source)
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("P")
            await asked(pilot)
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
            assert source.commands == []

    async def test_capital_e_evaluates_now_and_says_when_the_run_takes_it_later(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        source.takes_at_once = False
        app = make_app(source=source)
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("E")
            assert "Evaluate reverse_strings now?" in await asked(pilot)
            await pilot.press("y")
            await until(pilot, lambda: source.commands == ["evaluate now"])
            await until(pilot, lambda: "holds its loop" in "".join(app.said))

    async def test_what_makes_no_sense_is_refused_before_it_is_asked(self, make_app: MakeApp) -> None:
        source = RecordedSource(recorded.evaluating())
        app = make_app(source=source)
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("E")
            source.play(paused())
            await until(pilot, lambda: app.moment.snapshot.run.state == "paused")
            await pilot.press("P")
            assert app.said == ["an evaluation runs already", "it is paused already"]
            assert not isinstance(app.screen, ConfirmScreen)

    @pytest.mark.parametrize(("key", "verb"), [("x", "cancel"), ("b", "requeue")])
    async def test_a_group_in_flight_is_named_before_it_is_taken(self, make_app: MakeApp, key: str, verb: str) -> None:
        source = RecordedSource(running())
        async with make_app(source=source).run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("1", "j", key)
            pane = pilot.app.screen_stack[0].query_one(QueuePane)
            row = pane.groups[1]
            question = await asked(pilot)
            assert f"{verb.capitalize()} group {row.group_id}?" in question
            assert row.item in question
            await pilot.press("y")
            await until(pilot, lambda: source.commands == [f"{verb} {row.group_id}"])

    async def test_a_refusal_of_the_worker_is_shown_in_its_words(self, make_app: MakeApp) -> None:
        class Refusing(RecordedSource):
            async def cancel_group(self, group_id: int) -> bool:
                raise AtroposError(f"the worker refused: group {group_id} is finished")

        app = make_app(source=Refusing(running()))
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("1", "x")
            await asked(pilot)
            await pilot.press("y")
            await until(pilot, lambda: app.said == ["the worker refused: group 1388 is finished"])

    async def test_no_key_of_a_read_only_screen_asks_at_all(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        app = make_app(source=source, read_only=True, fleet=RecordedFleet())
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("1", "x", "b", "P", "E")
            await until(pilot, lambda: app.said == ["read-only: this screen cannot change the run"] * 4)
            await pilot.press("F")
            await until(pilot, lambda: isinstance(app.screen, FleetScreen))
            await pilot.press("p", "r")
            await until(pilot, lambda: app.said[4:] == ["read-only: this screen cannot change a run"] * 2)
            assert source.commands == []


class TestQueue:
    async def test_o_changes_the_order_and_the_cursor_goes_to_the_first(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            await known(pilot)
            pane = pilot.app.screen.query_one(QueuePane)
            await pilot.press("1", "G", "o")
            assert (pane.order, pane.cursor) == (Order.LEAST_DONE, 0)
            shares = [row.rollouts_done / row.rollouts for row in pane.groups]
            assert shares == sorted(shares)
            assert "fewest done first" in painted(pane)
            await pilot.press("o")
            assert pane.group is not None
            assert pane.group.completion_tokens == max(row.completion_tokens for row in pane.groups)
            await pilot.press("o", "o")
            assert pane.order is Order.LONGEST

    async def test_zoomed_the_group_under_the_cursor_is_told_in_full(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("1", "z")
            pane = pilot.app.screen.query_one(QueuePane)
            await until(pilot, lambda: "group 1388" in painted(pane))
            assert "7 of 8 rollouts done" in painted(pane)
            assert "last call to 0 http://10.0.0.5:9001/v1" in painted(pane)


class TestConfig:
    async def opened(self, pilot: Pilot[Any]) -> ConfigPane:
        app = await known(pilot)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, ConfigScreen))
        pane = app.screen.query_one(ConfigPane)
        await until(pilot, lambda: pane.rows)
        return pane

    async def test_c_shows_each_value_with_its_source(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            pane = await self.opened(pilot)
            line = next(line for line in painted(pane).splitlines() if "env.total_steps" in line)
            assert line.split()[-4:-1] == ["2000", "command", "line"]
            assert "13 of 31 values set" in painted(pane)

    async def test_slash_filters_while_one_types_and_escape_takes_the_filter_away(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            pane = await self.opened(pilot)
            await pilot.press("slash", *"openai URL", "enter")
            assert [row.name for row in pane.shown_rows] == [f"openai[{index}].base_url" for index in range(3)]
            assert pilot.app.focused is pane
            await pilot.press("escape")
            assert pane.rows == 31
            await pilot.press("escape")
            assert isinstance(pilot.app.screen, DashboardScreen)

    async def test_x_leaves_out_what_nobody_set(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            pane = await self.opened(pilot)
            await pilot.press("x")
            assert pane.rows == 13
            assert "class default" not in {row.source for row in pane.shown_rows}

    async def test_a_long_value_is_shown_in_full_below(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            pane = await self.opened(pilot)
            await pilot.press(*["j"] * 16)
            assert pane.shown_rows[pane.cursor].name == "env.system_prompt"
            assert painted(pane).count("nothing else") >= 5

    async def test_a_run_that_cannot_be_asked_says_why(self, make_app: MakeApp) -> None:
        class Silent(RecordedSource):
            async def config(self) -> Any:
                raise AtroposError("the worker does not answer")

        async with make_app(source=Silent(running())).run_test(size=SIZE) as pilot:
            app = await known(pilot)
            await pilot.press("c")
            await until(pilot, lambda: isinstance(app.screen, ConfigScreen))
            pane = app.screen.query_one(ConfigPane)
            await until(pilot, lambda: "the worker does not answer" in painted(pane))


class TestEvalsAlertsAndLogs:
    async def test_right_and_left_change_the_metric_of_the_chart(self, make_app: MakeApp) -> None:
        async with make_app().run_test(size=SIZE) as pilot:
            app = await known(pilot)
            await pilot.press("e")
            await until(pilot, lambda: app.screen.query(EvalsPane))
            pane = app.screen.query_one(EvalsPane)
            await pilot.press("right")
            assert pane.metric == "eval/mean_score"
            assert "2 of 3 metrics" in painted(pane)
            await pilot.press("left", "h")
            assert pane.metric == "eval/mean_tokens"
            await pilot.press("m")
            assert pane.metric == "eval/accuracy"

    @pytest.mark.parametrize(
        ("alert", "number"),
        [("servers_down", 5), ("outbox", 4), ("zero_advantage", 3), ("length_drift", 2), ("no_progress", 1)],
    )
    async def test_enter_on_an_alert_shows_the_pane_with_its_evidence(
        self, make_app: MakeApp, alert: str, number: int
    ) -> None:
        run = replace(running().run, alerts=(Alert(alert, "something is wrong", recorded.NOW - 5),))
        app = make_app(replace(running(), run=run))
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("a")
            await until(pilot, lambda: isinstance(app.screen, AlertsScreen))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
            screen = app.screen
            assert isinstance(screen, DashboardScreen)
            assert screen.zoomed
            assert screen.pane is not None
            assert screen.pane.number == number

    async def test_enter_on_an_alert_that_names_a_group_opens_the_group(self, make_app: MakeApp) -> None:
        wanted = recorded.ended_rows(4)[3].group_id
        run = replace(running().run, alerts=(Alert("repetition", "round in circles", recorded.NOW, group_id=wanted),))
        app = make_app(replace(running(), run=run))
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("a", "enter")
            await until(pilot, lambda: app.screen.query(RolloutPane))
            rollout = app.screen.query_one(RolloutPane)
            await until(pilot, lambda: rollout.detail is not None and rollout.detail.row.group_id == wanted)

    async def test_enter_on_a_log_line_opens_the_group_that_it_tells_of(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("l")
            await until(pilot, lambda: app.screen.query(LogsPane))
            assert "item    reverse oahto" in painted(app.screen.query_one(LogsPane))
            await pilot.press("j", "enter")
            assert app.said == ["this line tells of no group"]
            await pilot.press("k", "enter")
            await until(pilot, lambda: app.screen.query(RolloutPane))
            rollout = app.screen.query_one(RolloutPane)
            await until(pilot, lambda: rollout.detail is not None and rollout.detail.row.group_id == 1_387)


class TestManners:
    async def test_capital_m_leaves_the_mouse_to_the_terminal_and_takes_it_back(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            await pilot.press("M", "M")
            assert app.said == [
                "the terminal has the mouse, to select text; M changes it",
                "the screen has the mouse; M changes it",
            ]

    async def test_a_theme_that_is_saved_shows_at_once_and_a_broken_one_leaves_the_colours(
        self, make_app: MakeApp, tmp_path: Path
    ) -> None:
        shipped = (Path(__file__).parents[2] / "themes" / "dusk.toml").read_text()
        (tmp_path / "themes").mkdir()
        mine = tmp_path / "themes" / "mine.toml"
        app = make_app(user_files=UserFiles(directory=tmp_path))
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            header = app.screen.query_one("#header", Canvas)
            before = header.render_line(0)
            mine.write_text(shipped.replace("#17181c", "#000011"))
            await until(pilot, lambda: app.look.colors.background == "#000011" and header.render_line(0) != before)
            mine.write_text(shipped.replace("#17181c", "bluish"))
            await until(pilot, lambda: "write it as #rrggbb; the colours stay as they were" in "".join(app.said))
            assert app.look.colors.background == "#000011"

    async def test_a_new_alert_rings_the_bell_once_where_it_is_wanted(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rung: list[str] = []
        source = RecordedSource(paused())
        app = make_app(source=source, user_files=UserFiles(bell=True))
        monkeypatch.setattr(app, "bell", lambda: rung.append("ding"))
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            source.play(running())
            await until(pilot, lambda: rung == ["ding"])
            source.play(replace(running(), seq=9_000))
            await until(pilot, lambda: app.moment.snapshot.seq == 9_000)
            assert rung == ["ding"]


@pytest.mark.parametrize("scope", [Scope.QUEUE, Scope.FLEET, Scope.CONFIG, Scope.EVALS, Scope.ALERTS, Scope.LOGS])
async def test_the_help_of_each_screen_lists_its_keys(make_app: MakeApp, scope: Scope) -> None:
    keys = {Scope.FLEET: "F", Scope.CONFIG: "c", Scope.EVALS: "e", Scope.ALERTS: "a", Scope.LOGS: "l"}
    app = make_app(fleet=RecordedFleet())
    async with app.run_test(size=(200, 60)) as pilot:
        await known(pilot)
        await pilot.press(*([keys[scope]] if scope in keys else []), "question_mark")
        await until(pilot, lambda: app.screen.query("#help"))
        page = app.screen.query_one("#help", Canvas)
        await until(pilot, lambda: commands([scope])[0].help in painted(page))
        for command in commands([scope]):
            assert command.help in painted(page)


@pytest.mark.parametrize("key", ["", "t", "l", "e", "a", "c", "F"])
async def test_every_command_of_the_palette_is_one_that_its_screen_knows(make_app: MakeApp, key: str) -> None:
    app = make_app(fleet=RecordedFleet(), open_run=lambda run: RecordedSource(running()))
    async with app.run_test(size=SIZE) as pilot:
        await known(pilot)
        await pilot.press(*([key] if key else []))
        screen = app.screen
        for command in app.get_system_commands(screen):
            namespace, _, action = parse(command).rpartition(".")
            owner = {"app": app, "screen": screen, "": screen}[namespace]
            assert hasattr(owner, f"action_{action}"), command.title


def parse(command: SystemCommand) -> str:
    """The name of the action that a command of the palette runs."""
    assert isinstance(command.callback, partial)
    action: str = command.callback.args[0]
    return action.partition("(")[0]


async def test_panes_that_are_hidden_are_not_drawn(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    source = RecordedSource(running())
    async with make_app(source=source).run_test(size=SIZE) as pilot:
        app = await known(pilot)
        await pilot.press("1", "z")
        drawn: list[str] = []
        for pane in app.screen.query(Pane):
            monkeypatch.setattr(pane, "draw", noting(drawn, pane))
        source.play(replace(running(), seq=9_000))
        await until(pilot, lambda: app.moment.snapshot.seq == 9_000 and drawn)
        assert set(drawn) == {"Rollout queue"}


def noting(drawn: list[str], pane: Pane) -> Callable[[int, int], list[Line]]:
    """The pane's own drawing, and a note that it drew."""
    draw = pane.draw

    def noted(width: int, height: int) -> list[Line]:
        drawn.append(pane.title)
        return draw(width, height)

    return noted
