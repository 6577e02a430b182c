"""Sending less to the terminal than Textual does by itself.

Textual 8 sends a changed row of a widget from the left edge of the widget on, although it knows which cells changed,
and lays out in several passes of which each sends the whole screen: a new size costs four pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.control import Control
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip


class ShownPicture:
    """What the terminal shows, as far as it is known. What it shows already is not sent again."""

    def __init__(self) -> None:
        self._rows: dict[int, Strip] = {}

    def forget(self) -> None:
        """Something else may stand on the terminal: the next picture is sent whole."""
        self._rows.clear()

    def narrowed(self, update: RenderableType | None) -> RenderableType | None:
        """The same update, without what the terminal shows when it is sent."""
        if isinstance(update, ChopsUpdate):
            return _PartialUpdate(update, self)
        if isinstance(update, LayoutUpdate):
            return _WholeUpdate(update, self)
        return update

    def row(self, y: int, pieces: Sequence[Strip], console: Console) -> str:
        """The sequence that shows a whole row."""
        row = Strip.join(pieces)
        if self._rows.get(y) == row:
            return ""
        self._rows[y] = row
        return _sequence(0, y, pieces, console)

    def piece(self, x: int, y: int, piece: Strip, console: Console) -> str:
        """The sequence that shows a piece of a row from column `x` on."""
        row, end = self._rows.get(y), x + piece.cell_length
        if row is not None:
            if row.crop(x, end) == piece:
                return ""
            self._rows[y] = Strip.join((row.crop(0, x), piece, row.crop(end)))
        return _sequence(x, y, (piece,), console)


class _WholeUpdate(LayoutUpdate):
    """Sends the rows that are not shown."""

    def __init__(self, update: LayoutUpdate, shown: ShownPicture) -> None:
        super().__init__(update.strips, update.region)
        self._shown = shown

    def render_segments(self, console: Console) -> str:
        rows = enumerate(self.strips, self.region.y)
        return "".join(self._shown.row(y, tuple(pieces), console) for y, pieces in rows)


class _PartialUpdate(ChopsUpdate):
    """Sends the cells inside of the spans that are not shown."""

    def __init__(self, update: ChopsUpdate, shown: ShownPicture) -> None:
        super().__init__(update.chops, update.spans, update.chop_ends)
        self._shown = shown

    def render_segments(self, console: Console) -> str:
        sequences: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if strip is not None and start < stop:
                    sequences.append(self._shown.piece(start, y, strip.crop(start - x, stop - x), console))
        return "".join(sequences)


def _sequence(x: int, y: int, strips: Sequence[Strip], console: Console) -> str:
    return "".join((Control.move_to(x, y).segment.text, *(strip.render(console) for strip in strips)))
