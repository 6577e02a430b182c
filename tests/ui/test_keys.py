"""Each key does what the key table says, and says so when it cannot."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.errors import AtroposError
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.header import Header
from atropos_tui.ui.help import HelpScreen
from atropos_tui.ui.keys import COMMANDS, Scope, commands
from atropos_tui.ui.leaving import DETACH
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.panes.scores import ScoresPane
from atropos_tui.ui.panes.skipped import SkippedPane
from atropos_tui.ui.quit import QuitScreen
from atropos_tui.ui.user_files import UserFiles
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource, crashed, paused, pausing, running


def header_text(app: AtroposApp) -> str:
    """The first line of the header, as it is painted."""
    header = app.screen.query_one(Header)
    return "".join(segment.text for segment in header.render_line(0))


def painted(canvas: Canvas) -> list[str]:
    return ["".join(segment.text for segment in canvas.render_line(y)) for y in range(canvas.size.height)]


def focused_number(app: AtroposApp) -> int:
    assert isinstance(app.focused, Pane)
    return app.focused.number


async def known(pilot: Pilot[Any]) -> ListenedApp:
    """Wait for the first snapshot."""
    app = pilot.app
    assert isinstance(app, ListenedApp)
    await until(pilot, lambda: app.moment.known)
    return app


class TestCommandsToTheRun:
    async def test_p_asks_for_a_pause_and_shows_it_at_once_and_then_as_the_run_reports_it(
        self, make_app: MakeApp
    ) -> None:
        source = RecordedSource(running())
        app = make_app(source=source)
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            await pilot.press("p")
            await until(pilot, lambda: source.commands == ["pause"])
            assert "◐ pausing" in header_text(app)
            source.play(pausing())
            await until(pilot, lambda: app.moment.asked == "" and "pausing" in header_text(app))
            source.play(paused())
            await until(pilot, lambda: "‖ paused" in header_text(app))

    async def test_r_resumes_a_paused_run(self, make_app: MakeApp) -> None:
        source = RecordedSource(paused())
        app = make_app(source=source)
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("r")
            await until(pilot, lambda: source.commands == ["resume"])
            assert "resuming" in header_text(app)
            source.play(running())
            await until(pilot, lambda: "● running" in header_text(app))

    async def test_s_starts_one_group_of_a_paused_run(self, make_app: MakeApp) -> None:
        source = RecordedSource(paused())
        app = make_app(source=source)
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("s")
            await until(pilot, lambda: source.commands == ["step"])

    async def test_no_key_of_a_read_only_screen_commands_the_run(self, make_app: MakeApp) -> None:
        source = RecordedSource(paused())
        app = make_app(source=source, read_only=True)
        keys = [key for command in commands([Scope.RUN]) for key in command.keys.split(",")]
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press(*keys)
            refusal = "read-only: this screen cannot change the run"
            await until(pilot, lambda: app.said == [refusal] * len(keys))
            assert source.commands == []

    async def test_a_command_that_makes_no_sense_now_is_refused_with_the_reason(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        app = make_app(source=source)
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("r", "s")
            source.play(paused())
            await until(pilot, lambda: "paused" in header_text(app))
            await pilot.press("p")
            source.play(crashed())
            await until(pilot, lambda: "crashed" in header_text(app))
            await pilot.press("p")
            assert app.said == [
                "it is not paused",
                "a single group can be started while the run is paused: p first",
                "it is paused already",
                "the run has ended",
            ]
            assert source.commands == []

    async def test_without_a_connection_no_command_is_sent(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        app = make_app(source=source)
        async with app.run_test() as pilot:
            await known(pilot)
            source.break_off(AtroposError("gone"))
            await until(pilot, lambda: "disconnected" in header_text(app))
            await pilot.press("p")
            await until(pilot, lambda: app.said == ["there is no connection to the run"])

    async def test_a_command_that_the_worker_refuses_shows_its_words_and_the_header_stops_waiting(
        self, make_app: MakeApp
    ) -> None:
        class Refusing(RecordedSource):
            async def pause(self) -> None:
                raise AtroposError("the worker refused: [read-only]")

        app = make_app(source=Refusing(running()))
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("p")
            await until(pilot, lambda: app.said == ["the worker refused: [read-only]"])
            assert app.moment.asked == ""


class TestDashboard:
    async def test_digits_lead_to_the_panes(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            for number in (3, 1, 5, 2, 4):
                await pilot.press(str(number))
                assert focused_number(app) == number

    async def test_tab_goes_round_all_panes_and_shift_tab_back(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            seen = []
            for _ in range(5):
                seen.append(focused_number(app))
                await pilot.press("tab")
            assert (seen, focused_number(app)) == ([1, 2, 3, 4, 5], 1)
            await pilot.press("shift+tab")
            assert focused_number(app) == 5

    async def test_left_and_right_lead_to_the_pane_beside(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            await pilot.press("3", "right")
            assert focused_number(app) == 4
            await pilot.press("left")
            assert focused_number(app) == 3
            await pilot.press("left")
            assert focused_number(app) == 3

    async def test_z_and_enter_zoom_a_pane_and_z_and_escape_lead_back(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            for into, back in (("z", "z"), ("enter", "escape")):
                await pilot.press("2", into)
                pane = app.focused
                assert pane is not None
                assert (pane.size.width, pane.size.height) == (120, 36)
                assert not app.screen.query_one("#rollout-queue").display
                await pilot.press(back)
                assert app.screen.query_one("#rollout-queue").display
                assert app.focused is pane

    async def test_w_shortens_the_window_of_the_trend(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            scores = app.screen.query_one(ScoresPane)

            def axis() -> str:
                return next(line for line in painted(scores) if " ago" in line)

            assert "12m ago" in axis()
            await pilot.press("w", "w")
            assert "10m ago" in axis()
            await pilot.press("w")
            assert "2m ago" in axis()

    async def test_zoomed_a_digit_changes_to_the_other_pane(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            await pilot.press("2", "z", "5")
            assert focused_number(app) == 5
            assert app.focused is not None
            assert app.focused.size.height == 36

    async def test_the_cursor_moves_and_stays_inside(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            pane = app.focused
            assert isinstance(pane, Pane)
            await pilot.press("j", "down", "k")
            assert pane.cursor == 1
            await pilot.press("up", "up", "up")
            assert pane.cursor == 0
            await pilot.press("G")
            assert pane.cursor == 31
            await pilot.press("pageup")
            assert 0 < pane.cursor < 31
            await pilot.press("pagedown", "pagedown", "g")
            assert pane.cursor == 0

    async def test_the_cursor_stays_on_its_group_when_others_come_above_it(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        app = make_app(source=source)
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            await pilot.press("3", "j", "j")
            pane = app.screen.query_one(SkippedPane)
            group_id = pane.group_id
            base = running()
            newest = replace(base.skipped.recent[0], group_id=5_000)
            source.play(replace(base, skipped=replace(base.skipped, recent=(newest, *base.skipped.recent))))
            await until(pilot, lambda: pane.rows == len(base.skipped.recent) + 1)
            assert (pane.cursor, pane.group_id) == (3, group_id)

    async def test_enter_on_a_skipped_group_opens_it(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await known(pilot)
            wanted = app.moment.snapshot.skipped.recent[1].group_id
            await pilot.press("3", "j", "enter")
            await until(pilot, lambda: app.screen.query(RolloutPane))
            rollout = app.screen.query_one(RolloutPane)
            await until(pilot, lambda: rollout.detail is not None and rollout.detail.row.group_id == wanted)


class TestScreens:
    async def test_each_screen_opens_and_escape_leads_back_to_the_dashboard(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            for key in ("t", "l", "e", "a"):
                await pilot.press(key)
                await until(pilot, lambda: not isinstance(app.screen, DashboardScreen))
                await pilot.press("escape")
                await until(pilot, lambda: isinstance(app.screen, DashboardScreen))

    async def test_screens_replace_each_other(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("l", "e", "a", "l")
            await until(pilot, lambda: len(app.screen_stack) == 2)

    async def test_the_help_lists_every_command_of_its_screen_and_closes(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(200, 60)) as pilot:
            await known(pilot)
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            text = "\n".join(painted(app.screen.query_one("#help", Canvas)))
            for command in commands(DashboardScreen.SCOPES):
                assert command.help in text
            await pilot.press("escape")
            assert isinstance(app.screen, DashboardScreen)

    async def test_capital_t_changes_the_theme_and_every_line_with_it(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            header = app.screen.query_one(Header)
            before = header.render_line(0)
            await pilot.press("T")
            await until(pilot, lambda: app.look.name == "dawn" and header.render_line(0) != before)

    async def test_the_command_palette_opens_with_a_colon(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            titles = [command.title for command in app.get_system_commands(app.screen)]
            assert any("pause" in title for title in titles)
            await pilot.press("colon")
            await until(pilot, lambda: type(app.screen).__name__ == "CommandPalette")


class TestLeaving:
    async def test_leaving_asks_and_names_the_run(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            for key in ("q", "ctrl+q", "ctrl+c"):
                await pilot.press(key)
                await until(pilot, lambda: isinstance(app.screen, QuitScreen))
                dialog = app.screen.query_one("#quit-dialog")
                assert "Leave reverse_strings?" in "".join(segment.text for segment in dialog.render_line(0))
                await pilot.press("escape")
                assert isinstance(app.screen, DashboardScreen)

    @pytest.mark.parametrize(("key", "answer"), [("s", "stop"), ("d", "detach")])
    async def test_the_app_returns_the_answer(self, make_app: MakeApp, key: str, answer: str) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("q", key)
            await pilot.pause()
        assert app.return_value == answer

    async def test_an_answer_that_was_not_offered_is_none(self, make_app: MakeApp) -> None:
        app = make_app(on_quit=(DETACH,))
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("q", "s")
            await pilot.pause()
            assert isinstance(app.screen, QuitScreen)

    async def test_q_twice_asks_once(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test() as pilot:
            await known(pilot)
            await pilot.press("q", "q")
            await pilot.pause()
            assert isinstance(app.screen, DashboardScreen)


class TestTheTable:
    def test_every_id_is_there_once(self) -> None:
        ids = [command.id for command in COMMANDS]
        assert len(ids) == len(set(ids))

    def test_no_key_has_two_meanings_in_one_scope(self) -> None:
        for scope in Scope:
            keys = [key for command in commands([scope]) for key in command.keys.split(",")]
            assert len(keys) == len(set(keys)), scope

    def test_no_command_needs_ctrl(self) -> None:
        for command in COMMANDS:
            assert any("ctrl" not in key for key in command.keys.split(","))

    async def test_a_keymap_gives_a_command_other_keys(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        app = make_app(source=source, user_files=UserFiles(keymap={"run.pause": "v"}))
        async with app.run_test() as pilot:
            await known(pilot)
            assert painted(app.screen.query_one("#footer", Canvas))[0].startswith(" v pause")
            await pilot.press("p")
            await pilot.pause()
            assert source.commands == []
            await pilot.press("v")
            await until(pilot, lambda: source.commands == ["pause"])


async def test_the_newest_of_many_snapshots_is_drawn_and_the_others_are_not(make_app: MakeApp) -> None:
    source = RecordedSource()
    app = make_app(source=source)
    async with app.run_test() as pilot:
        await pilot.pause()
        draws = 0
        header = app.screen.query_one(Header)
        show = header.show

        def counting(moment: Any) -> None:
            nonlocal draws
            draws += 1
            show(moment)

        header.show = counting  # type: ignore[method-assign]
        for _ in range(500):
            source.play(running())
        source.play(paused())
        await until(pilot, lambda: "paused" in header_text(app))
        assert draws < 50
        await asyncio.sleep(0)
