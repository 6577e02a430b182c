"""Sliding windows of bounded size: amounts by second, and durations with their percentiles."""

from __future__ import annotations

import math
from collections import deque


def significant(value: float, digits: int = 3) -> float:
    """Rounded to significant digits, so that what is shown changes only when a reader could tell."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    return float(f"{value:.{digits - 1}e}")


class RecentAmounts:
    """Whole amounts added up by second, over the last `seconds`. Times are monotonic seconds."""

    def __init__(self, seconds: int = 60) -> None:
        self._slots = [0] * seconds
        self._total = 0
        self._second: int | None = None
        self._first_second = 0

    def add(self, mono: float, amount: int = 1) -> None:
        self._advance(mono)
        self._slots[self._slot(0)] += amount
        self._total += amount

    def total(self, mono: float) -> int:
        """What was added in the last `seconds`, the running second included."""
        self._advance(mono)
        return self._total

    def per_second(self, mono: float) -> float:
        """The mean rate, over the time since the first call while that is shorter; steady within a second."""
        total = self.total(mono)
        elapsed = min(len(self._slots), int(mono) - self._first_second)
        return significant(total / max(1, elapsed))

    def by_second(self, mono: float) -> tuple[int, ...]:
        """The amounts of the last complete seconds, oldest first."""
        self._advance(mono)
        return tuple(self._slots[self._slot(back)] for back in range(len(self._slots) - 1, 0, -1))

    def _slot(self, back: int) -> int:
        assert self._second is not None
        return (self._second - back) % len(self._slots)

    def _advance(self, mono: float) -> None:
        second = int(mono)
        if self._second is None:
            self._second = self._first_second = second
            return
        passed = second - self._second
        if passed <= 0:
            return
        self._second = second
        for back in range(min(passed, len(self._slots))):
            slot = self._slot(back)
            self._total -= self._slots[slot]
            self._slots[slot] = 0


class RecentShare:
    """In what share of the last `seconds` something held, or of the time since the first call while that is shorter."""

    def __init__(self, seconds: int = 60) -> None:
        self._seconds = seconds
        self._microseconds = RecentAmounts(seconds)
        self._holds = False
        self._first: float | None = None
        self._until = 0.0

    def note(self, mono: float, holds: bool) -> None:
        """From now on it holds, or does not."""
        self._advance(mono)
        self._holds = holds

    def share(self, mono: float) -> float:
        """In hundredths, so that it changes only when a reader could tell."""
        if self._first is None:
            return 0.0
        self._advance(mono)
        # The oldest second leaves as a whole: there is one less than the window, and the part of the running one.
        length = min(mono - self._first, self._seconds - 1 + mono % 1)
        return round(min(1.0, self._microseconds.total(mono) / 1e6 / length), 2) if length > 0 else 0.0

    def _advance(self, mono: float) -> None:
        if self._first is None:
            self._first = self._until = mono
        start, self._until = max(self._until, mono - self._seconds), max(self._until, mono)
        while self._holds and start < mono:
            end = min(math.floor(start) + 1.0, mono)
            self._microseconds.add(start, round((end - start) * 1e6))
            start = end


class RecentDurations:
    """The newest durations in seconds, at most `size` and none older than `max_age`."""

    def __init__(self, size: int = 512, max_age: float = math.inf) -> None:
        self._window: deque[tuple[float, float]] = deque(maxlen=size)
        self._max_age = max_age

    def add(self, mono: float, duration: float) -> None:
        if math.isfinite(duration):
            self._window.append((mono, duration))

    def percentiles(self, mono: float) -> tuple[float, float]:
        """p50 and p95 by nearest rank; zeros when the window is empty."""
        while self._window and mono - self._window[0][0] > self._max_age:
            self._window.popleft()
        ranked = sorted(duration for _, duration in self._window)
        if not ranked:
            return 0.0, 0.0
        p50, p95 = (ranked[math.ceil(share * len(ranked)) - 1] for share in (0.5, 0.95))
        return significant(p50), significant(p95)
