"""What goes to the terminal: all that it does not show yet, once."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from atropos_tui.ui.painting import ShownPicture
from tests.ui.conftest import ListenedApp, until
from tests.ui.recorded import NOW, RecordedSource, running
from tests.ui.screen_steps import SIZE, known

WIDTH, HEIGHT = 12, 3
INKS = (Style(color="red"), Style(color="blue", bold=True))

cells = st.tuples(st.sampled_from("ab "), st.sampled_from(INKS))
rows = st.lists(cells, min_size=WIDTH, max_size=WIDTH)
whole_updates = st.lists(rows, min_size=HEIGHT, max_size=HEIGHT)
spans = st.tuples(st.integers(0, HEIGHT - 1), st.integers(0, WIDTH), st.integers(0, WIDTH))
partial_updates = st.tuples(whole_updates, st.lists(spans, max_size=3))


def strip(row: list[tuple[str, Style]]) -> Strip:
    return Strip([Segment(character, style) for character, style in row])


def whole(picture: list[list[tuple[str, Style]]]) -> LayoutUpdate:
    return LayoutUpdate([[strip(row)] for row in picture], Region(0, 0, WIDTH, HEIGHT))


def partial(picture: list[list[tuple[str, Style]]], places: list[tuple[int, int, int]]) -> ChopsUpdate:
    """Two widgets side by side, of which the cells in these places changed."""
    middle = WIDTH // 2
    chops = [{0: strip(row[:middle]), middle: strip(row[middle:])} for row in picture]
    return ChopsUpdate(chops, [(y, *sorted((x1, x2))) for y, x1, x2 in places], [[middle, WIDTH]] * HEIGHT)


def sent(shown: ShownPicture, update: CompositorUpdate) -> str:
    narrowed = shown.narrowed(update)
    assert isinstance(narrowed, CompositorUpdate)
    return narrowed.render_segments(Console(file=StringIO(), color_system="256", force_terminal=True))


@given(whole_updates, st.lists(st.one_of(whole_updates, partial_updates), max_size=6))
def test_the_terminal_shows_what_it_would_show_if_all_was_sent(first: Any, later: list[Any]) -> None:
    shown, screens = ShownPicture(), [pyte.Screen(WIDTH, HEIGHT) for _ in range(2)]
    streams = [pyte.Stream(screen) for screen in screens]
    for update in (first, *later):
        for stream, picture in zip(streams, (shown, ShownPicture()), strict=True):
            stream.feed(sent(picture, partial(*update) if isinstance(update, tuple) else whole(update)))
        assert screens[0].buffer == screens[1].buffer


@given(whole_updates)
def test_what_is_shown_is_not_sent_again(picture: Any) -> None:
    shown = ShownPicture()
    assert sent(shown, whole(picture))
    assert sent(shown, whole(picture)) == ""
    assert sent(shown, partial(picture, [(y, 0, WIDTH) for y in range(HEIGHT)])) == ""
    shown.forget()
    assert sent(shown, whole(picture)).count("\x1b[") >= HEIGHT


def test_a_partial_update_sends_the_cells_of_its_spans_alone() -> None:
    shown = ShownPicture()
    before, after = ([[(character, INKS[0])] * WIDTH for _ in range(HEIGHT)] for character in "ab")
    sent(shown, whole(before))
    sequence = sent(shown, partial(after, [(1, 4, 7)]))
    assert sequence.count("b") == 3
    assert sequence.startswith("\x1b[2;5H")


class PaintedApp(ListenedApp):
    """Counts the pictures of the whole screen."""

    pictures = 0

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        self.pictures += isinstance(renderable, LayoutUpdate)
        super()._display(screen, renderable)


async def test_a_terminal_that_has_its_old_size_again_is_painted_anew() -> None:
    app = PaintedApp(RecordedSource(running()), clock=lambda: 0.0, wall_clock=lambda: NOW, theme="dusk")
    async with app.run_test(size=SIZE) as pilot:
        await known(pilot)
        await pilot.pause()
        before = app.pictures
        app.post_message(events.Resize(app.size, app.size))
        await until(pilot, lambda: app.pictures > before)
