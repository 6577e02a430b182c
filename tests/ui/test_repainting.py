"""What a key changes is drawn once, in the next picture; and no picture shows what is not so any more."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import RenderableType
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer, TimerCallback

from atropos_tui.ui.app import QUIET_SECONDS
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.logs import LogsScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.themes import load_theme, shipped_theme_files
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, until
from tests.ui.recorded import NOW, RecordedSource, paused, running
from tests.ui.screen_steps import SIZE, known, painted


class RestingApp(ListenedApp):
    """Does not paint each second, so that what a key leads to stands alone."""

    wrong_widths: tuple[str, ...] = ()

    def set_interval(self, interval: float, callback: TimerCallback | None = None, **options: Any) -> Timer:
        return super().set_interval(interval, callback, **{**options, "pause": callback == self._paint})

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        self.wrong_widths += tuple(
            str(canvas.id)
            for canvas in screen.query(Canvas)
            if canvas in screen._compositor.visible_widgets and canvas.render_line(0).cell_length != canvas.size.width
        )
        super()._display(screen, renderable)


def resting_app(source: RecordedSource | None = None) -> RestingApp:
    return RestingApp(source or RecordedSource(running()), clock=lambda: 0.0, wall_clock=lambda: NOW, theme="dusk")


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each canvas was drawn, by its id."""
    counted: Counter[str] = Counter()
    drawn = Canvas._drawn_lines

    def count(canvas: Canvas) -> Any:
        counted[str(canvas.id)] += 1
        return drawn(canvas)

    monkeypatch.setattr(Canvas, "_drawn_lines", count)
    return counted


async def rested(pilot: Pilot[Any]) -> None:
    """The whole picture is there."""
    app = await known(pilot)
    await until(pilot, lambda: "backlog" in painted(app.screen.query_one("#rollout-queue", Pane)))
    await pilot.pause()


def picture(app: App[Any]) -> Sequence[Strip]:
    return app.screen._compositor.render_strips(app.size)


async def all_drawn_anew(pilot: Pilot[Any]) -> Sequence[Strip]:
    for canvas in pilot.app.screen.query(Canvas):
        canvas.redraw_all()
    await pilot.pause()
    return picture(pilot.app)


class TestDraws:
    async def test_leaving_a_zoomed_pane_draws_what_was_drawn_for_another_size_once(self, draws: Counter[str]) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press("z")
            await until(pilot, lambda: app.screen.query_one("#rollout-queue").size.width == SIZE[0])
            await pilot.pause()
            draws.clear()
            await pilot.press("z")
            await until(pilot, lambda: app.screen.query_one("#rollout-queue").size.width < SIZE[0])
            await pilot.pause()
            assert draws == {"rollout-queue": 1, "footer": 1}

    async def test_another_screen_is_drawn_once(self, draws: Counter[str]) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            draws.clear()
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LogsScreen) and draws["logs"])
            await pilot.pause()
            assert draws == {"header": 1, "logs": 1, "footer": 1}

    async def test_of_the_focus_only_the_panes_that_lose_and_gain_it_are_drawn(self, draws: Counter[str]) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            draws.clear()
            await pilot.press("2")
            await until(pilot, lambda: app.screen.query_one("#scores").has_focus and draws["rollout-queue"])
            await pilot.pause()
            assert draws == {"rollout-queue": 1, "scores": 1}

    async def test_a_theme_draws_each_visible_canvas_once(self, draws: Counter[str]) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            draws.clear()
            await pilot.press("T")
            await until(pilot, lambda: draws["header"])
            await pilot.pause()
            assert set(draws.values()) == {1}
            assert len(draws) == sum(canvas.display for canvas in app.screen.query(Canvas))

    async def test_what_is_hidden_is_drawn_when_it_is_shown_with_what_came_meanwhile(self, draws: Counter[str]) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press("z")
            scores = app.screen.query_one("#scores", Pane)
            await until(pilot, lambda: not scores.display)
            draws.clear()
            for mean in (0.25, 0.5):
                later = replace(running(), scores=replace(running().scores, mean=mean))
                scores.show(replace(app.moment, snapshot=later))
            await pilot.pause()
            assert draws["scores"] == 0
            await pilot.press("z")
            await until(pilot, lambda: draws["scores"])
            await pilot.pause()
            assert draws["scores"] == 1
            assert "0.50" in painted(scores)


class TestPictures:
    @pytest.mark.parametrize(
        "keys",
        [
            "z", "z z", "z T z", "5 z", "5 z escape", "2", "2 z z", "tab T", "2 z 3", "T T T", "l", "l T escape",
            "question_mark T escape", "z question_mark escape z",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("colors", [True, False])
    async def test_nothing_on_the_screen_is_older_than_the_last_key(
        self, keys: str, colors: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not colors:
            monkeypatch.setenv("NO_COLOR", "1")
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press(*keys.split())
            await pilot.pause()
            shown = picture(app)
            assert shown == await all_drawn_anew(pilot)

    async def test_nothing_is_stale_after_a_resize_between_two_zooms(self) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press("z")
            await pilot.resize_terminal(80, 24)
            await pilot.press("z")
            await pilot.resize_terminal(200, 60)
            await until(pilot, lambda: app.screen.size.width == 200)
            await pilot.pause()
            shown = picture(app)
            assert shown == await all_drawn_anew(pilot)

    async def test_a_theme_that_changes_while_a_screen_lies_behind_colours_it_too(self) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press("l", "T", "escape")
            await until(pilot, lambda: not isinstance(app.screen, LogsScreen))
            await pilot.pause()
            background = load_theme(shipped_theme_files()["dawn"]).colors.background
            styles = {segment.style for strip in picture(app) for segment in strip if segment.style is not None}
            grounds = {style.bgcolor.name for style in styles if style.bgcolor is not None}
            assert background in grounds
            assert load_theme(shipped_theme_files()["dusk"]).colors.background not in grounds

    async def test_no_picture_on_the_way_has_lines_of_another_width(self) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            for keys in ("z", "z", "5", "z", "escape"):
                await pilot.press(keys)
                await pilot.pause()
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: app.screen.size.width == 80)
            await pilot.pause()
            assert app.wrong_widths == ()

    async def test_a_canvas_that_was_removed_may_be_told_to_draw(self) -> None:
        app = resting_app()
        async with app.run_test(size=SIZE) as pilot:
            await rested(pilot)
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LogsScreen))
            pane = app.screen.query_one("#logs", Pane)
            await pilot.press("escape")
            await until(pilot, lambda: not pane.is_attached)
            pane.redraw()
            pane.redraw_all()
            pane.notify_style_update()

    async def test_what_came_while_another_screen_was_open_is_drawn_on_the_way_back(self, draws: Counter[str]) -> None:
        source = RecordedSource(running())
        app = resting_app(source)
        async with app.run_test(size=SIZE) as pilot:
            await known(pilot)
            dashboard = app.screen
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, LogsScreen))
            draws.clear()
            source.play(paused())
            await until(pilot, lambda: app.moment.snapshot == paused() and draws["logs"])
            assert "paused by" not in painted(dashboard.query_one("#header", Canvas))
            assert draws["rollout-queue"] == 0
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
            await until(pilot, lambda: "paused by ada@login1" in painted(app.screen.query_one("#header", Canvas)))


async def test_the_garbage_collector_waits_until_no_key_was_pressed_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[float] = []
    now = [100.0]
    monkeypatch.setattr("atropos_tui.garbage_collection.collect_if_due", lambda: collected.append(now[0]))
    app = RestingApp(RecordedSource(running()), clock=lambda: now[0], wall_clock=lambda: NOW, theme="dusk")
    async with app.run_test(size=SIZE) as pilot:
        await rested(pilot)
        now[0] = 110.0
        await pilot.press("j")
        now[0] += QUIET_SECONDS / 2
        app._collect_when_quiet()
        assert 110.0 + QUIET_SECONDS / 2 not in collected
        now[0] = 120.0
        app._collect_when_quiet()
        assert 120.0 in collected


async def test_what_a_closed_screen_was_painted_with_is_let_go() -> None:
    app = resting_app()
    async with app.run_test(size=SIZE) as pilot:
        await rested(pilot)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogsScreen) and app.screen.query("#logs"))
        await pilot.pause()
        kept = weakref.ref(app.screen.query_one("#logs")._styles_cache)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        await until(pilot, lambda: gc.collect() >= 0 and kept() is None)
