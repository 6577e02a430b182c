"""One moment on both clocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instant:
    """Now, as monotonic seconds, and what to add to get Unix seconds.

    The model keeps monotonic times only and turns them into Unix seconds when it shows them: a wall clock that jumps
    then moves all dates alike, and no age.
    """

    mono: float
    offset: float

    def at(self, mono: float | None) -> float:
        """Unix seconds of a monotonic time; 0.0 (never) for None."""
        return 0.0 if mono is None else round(mono + self.offset, 3)

    def since(self, mono: float) -> float:
        """Seconds from a monotonic time until now."""
        return max(0.0, self.mono - mono)
