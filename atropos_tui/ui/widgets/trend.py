"""A line over time in braille dots, with the band between lowest and highest behind it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, merged

GUTTER = 5
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800
_UPPER, _LOWER = 0x01 | 0x02 | 0x08 | 0x10, 0x04 | 0x40 | 0x20 | 0x80


class Sample(NamedTuple):
    """One point of the line and the extent of the band there."""

    value: float
    low: float
    high: float


def trend(samples: Sequence[Sample], width: int, height: int, *, bottom: float, top: float) -> list[Line]:
    """The samples across the whole width on a scale from `bottom` to `top`, whose values stand in the gutter."""
    columns = width - GUTTER
    if columns < 2 or height < 1:
        return []
    plot = _Plot(columns, height, bottom, top)
    points = _thinned([sample for sample in samples if math.isfinite(sample.value)], columns * 2)
    if any(point.low < point.high for point in points):
        plot.draw_band(points)
    plot.draw_line(points)
    labels = {0: _label(top), height - 1: _label(bottom)}
    if height >= 7:
        labels[height // 2] = _label(top - (top - bottom) * (height // 2 + 0.5) / height)
    return [gutter(labels.get(y, "")) + row for y, row in enumerate(plot.lines())]


class _Plot:
    """Dots, two across and four down in each cell; the band and the line apart so that each has its ink."""

    def __init__(self, columns: int, rows: int, bottom: float, top: float) -> None:
        self._columns, self._rows = columns, rows
        self._bottom, self._span = bottom, (top - bottom) or 1.0
        self._line = [[0] * columns for _ in range(rows)]
        self._band = [[0] * columns for _ in range(rows)]

    def draw_line(self, points: Sequence[Sample]) -> None:
        before: tuple[int, int] | None = None
        for x, point in self._placed(points):
            y = self._y(point.value)
            if before is not None:
                self._connect(before, (x, y))
            self._set(self._line, x, y)
            before = (x, y)

    def draw_band(self, points: Sequence[Sample]) -> None:
        """From low to high, interpolated between the points."""
        placed = list(self._placed(points))
        for (x0, a), (x1, b) in itertools.pairwise(placed):
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

    def _placed(self, points: Sequence[Sample]) -> list[tuple[int, Sample]]:
        last = self._columns * 2 - 1
        if len(points) == 1:
            return [(last, points[0])]
        return [(round(index * last / (len(points) - 1)), point) for index, point in enumerate(points)]

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


def _thinned(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most `most` samples: neighbours are averaged, and the band keeps their extremes."""
    if len(samples) <= most:
        return list(samples)
    thinned = []
    for index in range(most):
        part = samples[index * len(samples) // most : (index + 1) * len(samples) // most]
        thinned.append(
            Sample(
                value=sum(sample.value for sample in part) / len(part),
                low=min(sample.low for sample in part),
                high=max(sample.high for sample in part),
            )
        )
    return thinned


def _label(value: float) -> str:
    """With a digit less where a minus takes its place."""
    text = formatting.score(value)
    return text if len(text) < GUTTER else f"{value:.1f}"


def gutter(label: str) -> Line:
    """What stands left of a chart in one of its rows."""
    return Line(Span(label, Ink.DIM)).fit_right(GUTTER - 1) + Line(" ")
