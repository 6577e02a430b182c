"""How long to wait after failures, so that a broken part is tried gently and nothing is eaten in a storm."""

from __future__ import annotations

FREE_FAILURES = 2


class Backoff:
    """Doubling waits with a ceiling; `reset` after a success."""

    def __init__(self, first: float = 0.1, ceiling: float = 30.0) -> None:
        self._first = first
        self._ceiling = ceiling
        self._failures = 0

    def next_wait(self) -> float:
        """Count one failure and tell how many seconds to wait."""
        self._failures += 1
        return min(self._ceiling, self._first * 2.0 ** min(self._failures - 1, 30))

    def reset(self) -> None:
        self._failures = 0


class FailureStreak:
    """Consecutive failures of the environment's code, and until when launching rests because of them.

    A single failure costs nothing. From the third in a row on each one doubles the rest; groups that were launched
    before the rest began don't lengthen it, and after a rest one group at a time goes out until one succeeds.
    """

    def __init__(self, longest_rest: float = 30.0) -> None:
        self.count = 0
        self.last_error = ""
        self.resting_until = 0.0
        self._backoff = Backoff(ceiling=longest_rest)

    @property
    def probing(self) -> bool:
        """Whether only one group at a time should be in flight."""
        return self.count > FREE_FAILURES

    def failed(self, error: str, now: float) -> None:
        self.last_error = error
        if now < self.resting_until:
            return
        self.count += 1
        if self.probing:
            self.resting_until = now + self._backoff.next_wait()

    def succeeded(self) -> None:
        self.count = 0
        self.resting_until = 0.0
        self._backoff.reset()

    def resting(self, now: float) -> float:
        """Seconds of rest that are left."""
        return max(0.0, self.resting_until - now)
