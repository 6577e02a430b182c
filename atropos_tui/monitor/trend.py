"""Curves over consecutive groups in order of completion: the whole run in few points, and means of twenty groups."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from atropos_tui.monitor.snapshot import TrendPoint

MAX_POINTS = 240
STRETCH = 20


class Trend:
    """Each point stands for equally many groups, save the newest; that number doubles when points get too many."""

    def __init__(self) -> None:
        self._points: list[TrendPoint] = []
        self._newest: TrendPoint | None = None
        self._groups_per_point = 1

    def add(self, at: float, mean: float, completion_tokens: float) -> None:
        """One group: when it was scored (Unix seconds), the mean of its scores and of its completions' lengths."""
        group = TrendPoint(at=at, groups=1, mean=mean, low=mean, high=mean, completion_tokens=completion_tokens)
        self._newest = group if self._newest is None else _merged(self._newest, group)
        if self._newest.groups < self._groups_per_point:
            return
        self._points.append(_rounded(self._newest))
        self._newest = None
        if len(self._points) == MAX_POINTS:
            self._points = [_merged(*self._points[index : index + 2]) for index in range(0, MAX_POINTS, 2)]
            self._groups_per_point *= 2

    def points(self) -> tuple[TrendPoint, ...]:
        """Oldest first, at most `MAX_POINTS`."""
        newest = () if self._newest is None else (_rounded(self._newest),)
        return (*self._points, *newest)


class Stretches:
    """Means of the first, the best and the newest 20 consecutive groups; None before there are 20."""

    def __init__(self) -> None:
        self._newest: deque[float] = deque(maxlen=STRETCH)
        self.first: float | None = None
        self.best: float | None = None
        self.last: float | None = None

    def add(self, mean: float) -> None:
        self._newest.append(mean)
        if len(self._newest) < STRETCH:
            return
        self.last = round(math.fsum(self._newest) / STRETCH, 6)
        self.first = self.last if self.first is None else self.first
        self.best = self.last if self.best is None else max(self.best, self.last)


def _merged(earlier: TrendPoint, later: TrendPoint) -> TrendPoint:
    groups = earlier.groups + later.groups

    def mean(one: float, other: float) -> float:
        return (one * earlier.groups + other * later.groups) / groups

    return TrendPoint(
        at=later.at,
        groups=groups,
        mean=mean(earlier.mean, later.mean),
        low=min(earlier.low, later.low),
        high=max(earlier.high, later.high),
        completion_tokens=mean(earlier.completion_tokens, later.completion_tokens),
    )


def _rounded(point: TrendPoint) -> TrendPoint:
    return replace(
        point,
        mean=round(point.mean, 6),
        low=round(point.low, 6),
        high=round(point.high, 6),
        completion_tokens=round(point.completion_tokens, 1),
    )
