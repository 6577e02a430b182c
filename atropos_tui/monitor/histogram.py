"""Counts of scores in fixed bins, with exact values that hold many rollouts told apart.

Rewards are rarely smooth: half of the rollouts score exactly 0 or exactly 1, and a histogram that puts those into a
bin with their neighbours hides both.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

BINS = 20
SPIKE_SHARE = 0.05
SPIKE_MIN_COUNT = 3

# Scores beyond this are counted in the outermost bin: edges further out would leave one bin for all the others.
_LARGEST = 1e12


@dataclass(frozen=True, slots=True)
class HistogramView:
    """`bins` leaves out the values that are in `spikes`."""

    edges: tuple[float, ...]
    bins: tuple[int, ...]
    spikes: tuple[tuple[float, int], ...]


def nice_limit(value: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50 … that is not below `value`."""
    if value <= 1.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value)


def nice_range(low: float, high: float) -> tuple[float, float]:
    """[0, 1], [-1, 1], or else [0, m], [-m, 0] or [-m, m] around the values, with m from `nice_limit`."""
    reach = nice_limit(min(max(abs(low), abs(high)), _LARGEST))
    return (-reach if low < 0 else 0.0), (reach if high > 0 or low >= 0 or reach == 1.0 else 0.0)


class Histogram:
    """A histogram of the values added and not yet removed.

    The edges stay as long as all values fall inside. They are [0, 1], or [-1, 1], or grow in steps of about two;
    `settle` lets them shrink again after outliers have been removed.
    """

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._total = 0
        self._edges: list[float] = []
        self._bins: list[int] = []

    def add(self, values: Iterable[float]) -> None:
        for value in map(_key, values):
            self._counts[value] += 1
            self._total += 1
            if not self._edges or not self._edges[0] <= value <= self._edges[-1]:
                self._widen(value)
            else:
                self._bins[self._bin(value)] += 1

    def remove(self, values: Iterable[float]) -> None:
        """Take back values that were added before."""
        for value in map(_key, values):
            self._total -= 1
            self._bins[self._bin(value)] -= 1
            self._counts[value] -= 1
            if not self._counts[value]:
                del self._counts[value]

    def settle(self) -> None:
        """Shrink the edges when the values need less than a quarter of their span."""
        if not self._counts:
            return
        low, high = nice_range(min(self._counts), max(self._counts))
        if high - low < (self._edges[-1] - self._edges[0]) / 4:
            self._rebin(low, high)

    def extent(self) -> tuple[float, float]:
        """The lowest and the highest value; zeros when there is none."""
        return (min(self._counts), max(self._counts)) if self._counts else (0.0, 0.0)

    def view(self) -> HistogramView:
        enough = max(SPIKE_MIN_COUNT, math.ceil(SPIKE_SHARE * self._total))
        spikes = [(value, count) for value, count in self._counts.items() if count >= enough]
        spikes.sort(key=lambda spike: (-spike[1], spike[0]))
        bins = list(self._bins)
        for value, count in spikes:
            bins[self._bin(value)] -= count
        return HistogramView(tuple(self._edges), tuple(bins), tuple(spikes))

    def _bin(self, value: float) -> int:
        return min(max(bisect_right(self._edges, value) - 1, 0), BINS - 1)

    def _widen(self, value: float) -> None:
        inside = (self._edges[0], self._edges[-1]) if self._edges else (value, value)
        low, high = nice_range(min(inside[0], value), max(inside[1], value))
        if self._edges and (low, high) == inside:
            self._bins[self._bin(value)] += 1
        else:
            self._rebin(low, high)

    def _rebin(self, low: float, high: float) -> None:
        self._edges = [round(low + index * (high - low) / BINS, 9) for index in range(BINS + 1)]
        self._bins = [0] * BINS
        for value, count in self._counts.items():
            self._bins[self._bin(value)] += count


def _key(value: float) -> float:
    """Values that differ by rounding only are the same value; there is one zero."""
    return round(value, 9) + 0.0
