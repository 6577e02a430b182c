"""Curves over consecutive groups in order of completion: the whole run and the last hour in few points, and means."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from atropos_tui.monitor.snapshot import TrendPoint

MAX_POINTS = 240
STRETCH = 20

# Up to which age of its groups, in seconds, a point of the recent trend stands for how many seconds.
_GRAINS = ((120.0, 4.0), (600.0, 20.0), (3_600.0, 60.0))


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


class RecentTrend:
    """The last hour in points of some seconds, which grow coarser as they grow older."""

    def __init__(self) -> None:
        self._points: list[TrendPoint] = []
        # The newest point, as sums, for groups may end by the thousand a second.
        self._slot = 0.0
        self._at = 0.0
        self._groups = 0
        self._means = 0.0
        self._tokens = 0.0
        self._low = self._high = 0.0

    def add(self, at: float, mean: float, completion_tokens: float) -> None:
        """One group, as in `Trend`."""
        slot = at // _GRAINS[0][1]
        if slot != self._slot or not self._groups:
            if self._groups:
                self._points = _coarsened(list(self.points()), at)
            self._slot, self._groups = slot, 0
            self._means = self._tokens = 0.0
            self._low = self._high = mean
        self._at = at
        self._groups += 1
        self._means += mean
        self._tokens += completion_tokens
        if mean < self._low:
            self._low = mean
        elif mean > self._high:
            self._high = mean

    def points(self) -> tuple[TrendPoint, ...]:
        """Oldest first, at most `MAX_POINTS`."""
        if not self._groups:
            return ()
        newest = TrendPoint(
            at=self._at,
            groups=self._groups,
            mean=self._means / self._groups,
            low=self._low,
            high=self._high,
            completion_tokens=self._tokens / self._groups,
        )
        return (*self._points, _rounded(newest))


def _coarsened(points: list[TrendPoint], now: float) -> list[TrendPoint]:
    """Those of one slot taken together, and without those older than the coarsest grain knows."""
    coarse: list[TrendPoint] = []
    for point in points:
        slot = _slot(point.at, now - point.at)
        if slot is None:
            continue
        if coarse and slot == _slot(coarse[-1].at, now - coarse[-1].at):
            coarse[-1] = _rounded(_merged(coarse[-1], point))
        else:
            coarse.append(point)
    return coarse[-(MAX_POINTS - 1) :]


def _slot(at: float, age: float) -> tuple[float, int] | None:
    """The stretch of time in which groups of that age are taken together; None when they are too old."""
    seconds = next((seconds for oldest, seconds in _GRAINS if age <= oldest), None)
    return None if seconds is None else (seconds, math.floor(at / seconds))


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
