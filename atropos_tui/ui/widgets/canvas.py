"""The one widget that paints: it draws all its lines anew and sends to the terminal only the cells that changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.color import Color
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from atropos_tui.ui.ink import Line, Span
from atropos_tui.ui.style_caches import let_go_of_lines

if TYPE_CHECKING:
    from atropos_tui.ui.app import AtroposApp
    from atropos_tui.ui.themes import Theme

# Moving the cursor and setting a style costs about as many bytes as this many cells.
_GAP = 12


class Canvas(Widget):
    """Subclasses say in `draw` which lines they consist of, and call `redraw` when their data changed.

    Textual's own table repaints all of its rows when one cell changes: 35 KiB/s over SSH where this costs 2.
    """

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id, classes=classes)
        self._painted: list[Line] = []
        self._strips: dict[int, Strip] = {}
        # What the strips are coloured by.
        self._look: Theme | None = None
        self._background: Color | None = None
        # The size that the lines were drawn for; None where they are out of date.
        self._drawn_size: Size | None = None

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines to show on `width` × `height` cells; missing ones are blank, surplus ones are left out."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again; hidden canvases wait until they are painted the next time."""
        if not (self.size and self.is_attached and self.display):
            if self._drawn_size is not None:
                self.redraw_all()
            return
        if self._drawn_size != self.size:
            self._draw_all()
            self.refresh()
            return
        lines = self._drawn_lines()
        changed: list[Region] = []
        for y, (old, new) in enumerate(zip_longest(self._painted, lines)):
            if old != new:
                self._strips.pop(y, None)
                changed.extend(_changed_regions(y, old, new, self.size.width))
        self._painted = lines
        if changed:
            self.refresh(*changed)

    def redraw_all(self) -> None:
        """Draw all lines again when they are painted next: their colours changed, or soon their size will."""
        self._drawn_size = None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._drawn_size != self.size:
            # Here, since the event that tells of a new size comes only after its first picture.
            self._draw_all()
        if y >= len(self._painted):
            return Strip.blank(self.size.width, self.rich_style)
        if y not in self._strips:
            self._strips[y] = self._strip(self._painted[y])
        return self._strips[y]

    def notify_style_update(self) -> None:
        """Of all that a style sheet says, only colours are in the lines; it is asked often, and rarely changes them."""
        super().notify_style_update()
        if self._painted and (self._look is not self.atropos.look or self._background != self.rich_style.bgcolor):
            self.redraw_all()

    def on_unmount(self) -> None:
        self._painted = []
        self._strips.clear()
        let_go_of_lines(self)

    @property
    def atropos(self) -> AtroposApp:
        """The app, for its theme and its keys."""
        from atropos_tui.ui.app import AtroposApp  # the app imports its widgets

        assert isinstance(self.app, AtroposApp)
        return self.app

    def _draw_all(self) -> None:
        self._look, self._background = self.atropos.look, self.rich_style.bgcolor
        self._drawn_size = self.size
        self._strips.clear()
        self._painted = self._drawn_lines()

    def _drawn_lines(self) -> list[Line]:
        """As many lines as there is room for, each of the whole width."""
        width, height = self.size
        lines = [line.fit(width) for line in self.draw(width, height)[:height]]
        return lines + [Line().fit(width)] * (height - len(lines))

    def _strip(self, line: Line) -> Strip:
        segment = self.atropos.look.segment
        return Strip([segment(span, self._background) for span in line.spans], line.width)


def _changed_regions(y: int, old: Line | None, new: Line | None, width: int) -> list[Region]:
    """The cells of row `y` that differ, in runs; nearby runs are taken together."""
    if old is None or new is None or old.width != new.width:
        return [Region(0, y, width, 1)]
    old_cells, new_cells = _cells(old), _cells(new)
    runs: list[tuple[int, int]] = []
    for x, (before, after) in enumerate(zip(old_cells, new_cells, strict=True)):
        if before == after:
            continue
        if runs and x - runs[-1][1] < _GAP:
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((x, x + 1))
    return [Region(start, y, _end_of_character(new_cells, end) - start, 1) for start, end in runs]


def _end_of_character(cells: list[tuple[str, Span]], end: int) -> int:
    """`end`, or the end of the wide character whose second half stands there."""
    while end < len(cells) and not cells[end][0]:
        end += 1
    return end


def _cells(line: Line) -> list[tuple[str, Span]]:
    """One entry a cell: its character (empty in the second half of a wide one) and its style (a span without text)."""
    cells: list[tuple[str, Span]] = []
    for span in line.spans:
        style = span._replace(text="")
        for character in span.text:
            width = cell_len(character)
            if width == 0 and cells:
                cells[-1] = (cells[-1][0] + character, style)
                continue
            cells.append((character, style))
            cells.extend([("", style)] * (width - 1))
    return cells
