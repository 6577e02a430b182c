"""A histogram in eighth blocks. Exact values that hold many rollouts stand apart as spikes of another ink."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, merged
from atropos_tui.ui.widgets.trend import GUTTER, gutter

_LOW_BLOCKS = " ▁▂▃▄▅▆▇█"
_CUT = "▲"
# A spike may be at most so many times as high as the chart before it is cut, so that the bins beside it stay visible.
_HIGHEST_CUT = 3.0
# From here on a value on the axis is written as thousands or millions.
_LARGE = 10_000.0


def histogram(
    edges: Sequence[float], bins: Sequence[int], spikes: Sequence[tuple[float, int]], width: int, height: int
) -> list[Line]:
    """Bars above an axis with its values. Bars and spikes share one scale; its top stands in the gutter."""
    columns, rows = width - GUTTER, height - 2
    if columns < 2 or rows < 1 or len(edges) < 2:
        return []
    heights = _column_heights(bins, columns)
    places = {_place(value, edges, columns): many for value, many in reversed(spikes)}
    scale = max(*heights, max(places.values(), default=0) / _HIGHEST_CUT, 1)
    step = scale / rows
    body = [
        gutter(formatting.short_count(scale) if row == 0 else "")
        + _row(heights, places, floor=step * (rows - 1 - row), step=step, topmost=row == 0)
        for row in range(rows)
    ]
    return [*body, gutter("") + _axis(edges, columns), gutter("") + _ticks(edges, columns)]


def _column_heights(bins: Sequence[int], columns: int) -> list[int]:
    """One height a column. Bins are merged where they would be narrower than two columns (a spike would hide one)."""
    if not bins:
        return [0] * columns
    merge = -(-len(bins) * 2 // columns)
    bars = [sum(bins[start : start + merge]) for start in range(0, len(bins), merge)]
    return [bars[column * len(bars) // columns] for column in range(columns)]


def _row(heights: list[int], spikes: dict[int, int], *, floor: float, step: float, topmost: bool) -> Line:
    """The part of the chart between the counts `floor` and `floor + step`."""
    spans: list[Span] = []
    for column, bar in enumerate(heights):
        spike = spikes.get(column)
        tall, ink = (bar, Ink.CHART) if spike is None else (spike, Ink.SPIKE)
        is_cut = topmost and tall > (floor + step) * 1.001
        spans.append(Span(_CUT if is_cut else _LOW_BLOCKS[_eighths(tall, floor, step)], ink))
    return Line(*merged(spans))


def _eighths(tall: float, floor: float, step: float) -> int:
    if tall <= 0:
        return 0
    filled = (tall - floor) / step
    least = 1 if floor == 0 else 0  # what is there shows
    return max(least, min(8, round(filled * 8)))


def _place(value: float, edges: Sequence[float], columns: int) -> int:
    share = (value - edges[0]) / ((edges[-1] - edges[0]) or 1.0)
    return min(columns - 1, max(0, round(share * (columns - 1))))


def _axis(edges: Sequence[float], columns: int) -> Line:
    marks = {_place(value, edges, columns) for value in _tick_values(edges, columns)}
    return Line(Span("".join("┴" if column in marks else "─" for column in range(columns)), Ink.FAINT))


def _ticks(edges: Sequence[float], columns: int) -> Line:
    cells = [" "] * columns
    for value in _tick_values(edges, columns):
        label = formatting.exact(value) if abs(value) < _LARGE else formatting.score(value)
        start = min(columns - len(label), max(0, _place(value, edges, columns) - len(label) // 2))
        cells[start : start + len(label)] = label
    return Line(Span("".join(cells).rstrip(), Ink.DIM))


def _tick_values(edges: Sequence[float], columns: int) -> list[float]:
    parts = 4 if columns >= 30 else 2
    return [edges[0] + (edges[-1] - edges[0]) * part / parts for part in range(parts + 1)]
