"""A clock that the test moves, so that a recorded run has the times that are looked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from atropos_tui.ledger import Clock

BEGIN = 1_800_000_000.0


@dataclass(frozen=True)
class HandClock(Clock):
    """Goes on when it is told to, and a millisecond with each look at it."""

    passed: list[float] = field(default_factory=lambda: [0.0])

    def go_on(self, seconds: float) -> None:
        self.passed[0] += seconds

    def monotonic(self) -> float:
        return 500.0 + self.passed[0]

    def wall(self) -> float:
        self.go_on(0.001)
        return BEGIN + self.passed[0]
