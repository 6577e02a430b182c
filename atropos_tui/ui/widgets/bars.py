"""Bars: thin ones in tables, tracks, shares of a whole, columns over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from atropos_tui.ui.ink import Ink, Line, Span

_LOW_BLOCKS = " ▁▂▃▄▅▆▇█"


def bar(share: float, ink: Ink = Ink.ACCENT) -> Callable[[int], Line]:
    """A thin bar for a cell of a table: it fills `share` (0–1) of the width. Anything above zero shows."""

    def draw(width: int) -> Line:
        halves = round(min(1.0, max(0.0, share)) * width * 2)
        if share > 0:
            halves = max(1, halves)
        return Line(Span("━" * (halves // 2) + "╸" * (halves % 2), ink))

    return draw


def gauge(done: int, of: int, width: int, ink: Ink = Ink.ACCENT) -> Line:
    """A thin track that is filled up to `done` of `of`."""
    filled = 0 if of <= 0 else min(width, done * width // of)
    if done > 0:
        filled = max(1, filled)
    return Line(Span("━" * filled, ink), Span("─" * (width - filled), Ink.FAINT))


def split_bar(parts: Sequence[tuple[float, Ink]], width: int) -> Line:
    """Shares of a whole beside each other; each part above zero gets a cell at least."""
    total = sum(weight for weight, _ in parts)
    if total <= 0:
        return Line(Span("─" * width, Ink.FAINT))
    cells = [min(1, ceil(weight)) for weight, _ in parts]
    while sum(cells) < width:
        owed = [weight / total * width - have for (weight, _), have in zip(parts, cells, strict=True)]
        cells[owed.index(max(owed))] += 1
    return Line(*(Span("━" * have, ink) for (_, ink), have in zip(parts, cells, strict=True)))


def sparkline(values: Sequence[float], width: int, ink: Ink = Ink.CHART) -> Line:
    """Values across at most `width` cells, on a scale from their lowest to their highest; equal ones in the middle.

    It leaves the top of its row free, so that sparklines below each other stay apart.
    """
    shown = _taken_together(values, width)
    if not shown:
        return Line()
    low, high = min(shown), max(shown)
    heights = [4 if high == low else 1 + round((value - low) / (high - low) * 6) for value in shown]
    return Line(Span("".join(_LOW_BLOCKS[height] for height in heights), ink))


def _taken_together(values: Sequence[float], most: int) -> list[float]:
    """Means of neighbours where there are more than `most` values."""
    if len(values) <= most:
        return list(values)
    parts = [values[index * len(values) // most : (index + 1) * len(values) // most] for index in range(most)]
    return [sum(part) / len(part) for part in parts]


def columns(values: Sequence[float], width: int, height: int, ink: Ink = Ink.CHART) -> list[Line]:
    """The newest `width` values as columns of eighth blocks, on a scale from zero to their highest."""
    shown = values[-width:]
    highest = max(shown, default=0.0) or 1.0
    eighths = [max(1 if value > 0 else 0, round(value / highest * height * 8)) for value in shown]
    lines = []
    for row in range(height):
        floor = (height - 1 - row) * 8
        text = "".join(_LOW_BLOCKS[max(0, min(8, tall - floor))] for tall in eighths)
        lines.append(Line(Span(text, ink)))
    return lines
