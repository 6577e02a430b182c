"""A line over time in braille dots, with the band between lowest and highest behind it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, merged

GUTTER = 5
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800
_UPPER, _LOWER = 0x01 | 0x02 | 0x08 | 0x10, 0x04 | 0x40 | 0x20 | 0x80
# Over a gap so many times as wide as the usual one, and such a part of the chart, no line is drawn: nothing was then.
_GAP_FACTOR = 6
_GAP_PART = 1 / 8


class Sample(NamedTuple):
    """One point of the line, where it is (a time or a step), and the extent of the band there."""

    at: float
    value: float
    low: float
    high: float


def trend(
    samples: Sequence[Sample], width: int, height: int, *, start: float, end: float, bottom: float, top: float
) -> list[Line]:
    """The samples, oldest first, each where it is between `start` and `end`, on a scale from `bottom` to `top`.

    The values of that scale stand in the gutter.
    """
    columns = width - GUTTER
    if columns < 2 or height < 1:
        return []
    plot = _Plot(columns, height, bottom, top)
    finite = [sample for sample in samples if math.isfinite(sample.value)]
    stretches = list(_stretches(_placed(finite, start, end, columns * 2), columns * 2))
    if any(sample.low < sample.high for sample in finite):
        for stretch in stretches:
            plot.draw_band(stretch)
    for stretch in stretches:
        plot.draw_line(stretch)
    labels = {0: _label(top), height - 1: _label(bottom)}
    if height >= 7:
        labels[height // 2] = _label(top - (top - bottom) * (height // 2 + 0.5) / height)
    return [gutter(labels.get(y, "")) + row for y, row in enumerate(plot.lines())]


# With its column of dots.
_Placed = tuple[int, Sample]


class _Plot:
    """Dots, two across and four down in each cell; the band and the line apart so that each has its ink."""

    def __init__(self, columns: int, rows: int, bottom: float, top: float) -> None:
        self._columns, self._rows = columns, rows
        self._bottom, self._span = bottom, (top - bottom) or 1.0
        self._line = [[0] * columns for _ in range(rows)]
        self._band = [[0] * columns for _ in range(rows)]

    def draw_line(self, points: Sequence[_Placed]) -> None:
        before: tuple[int, int] | None = None
        for x, point in points:
            y = self._y(point.value)
            if before is not None:
                self._connect(before, (x, y))
            self._set(self._line, x, y)
            before = (x, y)

    def draw_band(self, points: Sequence[_Placed]) -> None:
        """From low to high, interpolated between the points."""
        for (x0, a), (x1, b) in itertools.pairwise(points):
            for x in range(x0, x1 + 1):
                part = (x - x0) / max(1, x1 - x0)
                high = self._y(a.high + (b.high - a.high) * part)
                low = self._y(a.low + (b.low - a.low) * part)
                for y in range(high, low + 1):
                    self._set(self._band, x, y)

    def lines(self) -> list[Line]:
        return [self._row(y) for y in range(self._rows)]

    def _row(self, y: int) -> Line:
        return Line(*merged(_cell(*dots) for dots in zip(self._line[y], self._band[y], strict=True)))

    def _y(self, value: float) -> int:
        share = min(1.0, max(0.0, (value - self._bottom) / self._span))
        return round((1 - share) * (self._rows * 4 - 1))

    def _connect(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        (x0, y0), (x1, y1) = start, end
        steps = max(abs(x1 - x0), abs(y1 - y0))
        for step in range(1, steps):
            self._set(self._line, x0 + round((x1 - x0) * step / steps), y0 + round((y1 - y0) * step / steps))

    @staticmethod
    def _set(dots: list[list[int]], x: int, y: int) -> None:
        dots[y // 4][x // 2] |= _DOTS[x % 2][y % 4]


def _cell(line: int, band: int) -> Span:
    """The line in dots, on the band's ground where the band fills most of the cell; its edges as half blocks."""
    upper, lower = (band & _UPPER).bit_count(), (band & _LOWER).bit_count()
    if line:
        return Span(chr(_EMPTY | line), Ink.ACCENT, ground=Ground.BAND if upper + lower >= 5 else Ground.PLAIN)
    if upper >= 2 and lower >= 2:
        return Span(" ", Ink.BAND, ground=Ground.BAND)
    if upper >= 2 or lower >= 2:
        return Span("▀" if upper >= 2 else "▄", Ink.BAND)
    return Span(" ", Ink.BAND)


def _placed(samples: Sequence[Sample], start: float, end: float, dots: int) -> list[_Placed]:
    """The column of dots for each; those that share one are averaged, and the band keeps their extremes."""
    each = (end - start) / (dots - 1)
    if each <= 0:
        return [(dots - 1, _averaged(samples))] if samples else []

    def column(sample: Sample) -> int:
        return max(0, min(dots - 1, round((sample.at - start) / each)))

    return [(x, _averaged(list(shared))) for x, shared in itertools.groupby(samples, column)]


def _averaged(samples: Sequence[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    return Sample(
        at=samples[-1].at,
        value=sum(sample.value for sample in samples) / len(samples),
        low=min(sample.low for sample in samples),
        high=max(sample.high for sample in samples),
    )


def _stretches(points: Sequence[_Placed], dots: int) -> Iterator[list[_Placed]]:
    """Points with no long gap between them, which a line may connect."""
    gaps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(points)]
    longest = max(_GAP_PART * dots, _GAP_FACTOR * sorted(gaps)[len(gaps) // 2]) if gaps else 0
    begin = 0
    for index, gap in enumerate(gaps, 1):
        if gap > longest:
            yield list(points[begin:index])
            begin = index
    yield list(points[begin:])


def _label(value: float) -> str:
    """With fewer digits where a minus takes the place of one."""
    power = f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    return next(
        (text for text in (formatting.score(value), f"{value:.1f}", f"{value:.0f}") if len(text) < GUTTER), power
    )


def gutter(label: str) -> Line:
    """What stands left of a chart in one of its rows."""
    return Line(Span(label, Ink.DIM)).fit_right(GUTTER - 1) + Line(" ")
