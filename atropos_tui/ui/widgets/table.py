"""Rows of aligned columns, as lines: columns give way to narrow screens by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from atropos_tui.ui.ink import Ground, Ink, Line, Span

# A line, or what draws itself to the width of its column, such as a bar.
Cell: TypeAlias = Line | Callable[[int], Line]


class Column(NamedTuple):
    """`width` cells at least; `grows` takes what is left over. Columns of the highest `rank` are left out first."""

    title: str
    width: int
    right: bool = False
    grows: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """`count` rows; `row` gives one cell for each of `columns`, and is asked for the rows that are shown only.

    `cursor` is the selected row, -1 for none; `beyond` is how many more rows there are than can be asked for now.
    """

    columns: Sequence[Column]
    count: int
    row: Callable[[int], Sequence[Cell]]
    cursor: int = -1
    gap: int = 2
    with_head: bool = True
    beyond: int = 0

    def lines(self, width: int, height: int) -> list[Line]:
        """The head and the rows around the cursor; a last line tells how many rows there was no room for."""
        shown, widths = self._shown_columns(width)
        head = [self._head(shown, widths)] if self.with_head else []
        room = height - len(head)
        if room <= 0:
            return head[:height]
        first = self._first_row(room)
        rows = [self._row(index, shown, widths, width) for index in range(first, min(self.count, first + room))]
        hidden = self.count + self.beyond - first - len(rows)
        if hidden > 0 and self.cursor < first + len(rows) - 1:
            rows[-1] = Line(Span(f"  … {hidden + 1:,} more", Ink.FAINT))
        return [*head, *rows]

    def _first_row(self, room: int) -> int:
        """The cursor stays in view."""
        last_first = max(0, self.count - room)
        return min(last_first, max(0, self.cursor - room + 2))

    def _head(self, shown: list[int], widths: list[int]) -> Line:
        cells = [
            _aligned(Line(Span(self.columns[index].title, Ink.FAINT)), self.columns[index], column_width)
            for index, column_width in zip(shown, widths, strict=True)
        ]
        return self._joined(cells)

    def _row(self, index: int, shown: list[int], widths: list[int], width: int) -> Line:
        row = self.row(index)
        cells = [
            _aligned(row[column], self.columns[column], column_width)
            for column, column_width in zip(shown, widths, strict=True)
        ]
        line = self._joined(cells)
        return line.fit(width).on(Ground.SELECTED) if index == self.cursor else line

    def _joined(self, cells: list[Line]) -> Line:
        spans: list[Span] = []
        for number, cell in enumerate(cells):
            if number:
                spans.append(Span(" " * self.gap))
            spans.extend(cell.spans)
        return Line(*spans)

    def _shown_columns(self, width: int) -> tuple[list[int], list[int]]:
        """Which columns fit into `width`, and how wide each is."""
        shown = list(range(len(self.columns)))
        while len(shown) > 1 and self._needed(shown) > width:
            shown.remove(max(shown, key=lambda index: (self.columns[index].rank, index)))
        spare = max(0, width - self._needed(shown))
        growing = [index for index in shown if self.columns[index].grows]
        widths = [self.columns[index].width + (spare // len(growing) if index in growing else 0) for index in shown]
        return shown, widths

    def _needed(self, shown: list[int]) -> int:
        return sum(self.columns[index].width for index in shown) + self.gap * (len(shown) - 1)


def _aligned(cell: Cell, column: Column, width: int) -> Line:
    if not isinstance(cell, Line):
        cell = cell(width)
    return cell.fit_right(width) if column.right else cell.fit(width)
