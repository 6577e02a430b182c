"""The named parts of scores over the run: where each stands now, and whether it still tells rollouts apart."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from atropos_tui.ledger import GroupContent
from atropos_tui.monitor.bounded_text import one_line
from atropos_tui.monitor.score_statistics import mean_and_std
from atropos_tui.monitor.snapshot import ScorePart

MAX_PARTS = 16
MAX_POINTS = 64
WINDOW_GROUPS = 256
PART_NAME_LENGTH = 60


class ScoreParts:
    """Takes groups in order; of more than `MAX_PARTS` names the first are followed."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}

    def take(self, content: GroupContent) -> bool:
        """Whether the group told any parts."""
        told = _by_name([rollout.parts for rollout in content.rollouts])
        for name, values in told.items():
            if name not in self._parts and len(self._parts) >= MAX_PARTS:
                continue
            self._parts.setdefault(name, _Part()).take(values)
        return bool(told)

    def section(self) -> tuple[ScorePart, ...]:
        return tuple(part.section(name) for name, part in self._parts.items())


class _Part:
    """One part: the newest groups, and means of equally many groups over the run, a number that doubles."""

    def __init__(self) -> None:
        self._groups = 0
        self._window: deque[tuple[float, float]] = deque(maxlen=WINDOW_GROUPS)
        self._points: list[float] = []
        self._waiting: list[float] = []
        self._groups_per_point = 1

    def take(self, values: Sequence[float]) -> None:
        mean, std = mean_and_std(values)
        self._groups += 1
        self._window.append((mean, std))
        self._waiting.append(mean)
        if len(self._waiting) < self._groups_per_point:
            return
        self._points.append(fmean(self._waiting))
        self._waiting.clear()
        if len(self._points) == MAX_POINTS:
            self._points = [fmean(self._points[index : index + 2]) for index in range(0, MAX_POINTS, 2)]
            self._groups_per_point *= 2

    def section(self, name: str) -> ScorePart:
        newest = [fmean(self._waiting)] if self._waiting else []
        return ScorePart(
            name=name,
            groups=self._groups,
            mean=round(fmean(mean for mean, _ in self._window), 6),
            within_std=round(fmean(std for _, std in self._window), 6),
            points=tuple(round(point, 6) for point in (*self._points, *newest)),
        )


def _by_name(parts: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """The finite values of each part over the rollouts of a group."""
    told: dict[str, list[float]] = {}
    for name, value in _finite(parts):
        told.setdefault(one_line(name, PART_NAME_LENGTH), []).append(value)
    return told


def _finite(parts: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, float]]:
    for of_one in parts:
        yield from ((name, float(value)) for name, value in of_one.items() if math.isfinite(value))
