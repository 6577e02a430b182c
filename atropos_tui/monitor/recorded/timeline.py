"""Where in a recorded run one looks, and how one moves there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from atropos_tui.errors import UsageError

MINUTE_SECONDS = 60.0


class Stride(StrEnum):
    """How far one step goes: an event, a step of the trainer, a minute, a tenth of the run."""

    EVENT = "event"
    TRAINER_STEP = "step"
    MINUTE = "minute"
    TENTH = "tenth"


@dataclass(frozen=True, slots=True)
class Timeline:
    """From `begin` to `end` there is something to see; `at` is what is looked at, None the newest moment.

    Positions are Unix seconds, or line numbers where the file tells no times (`dated` False). `follows`: the newest
    moment goes on by itself, because the run does. `exact` is False while events are still being folded and a snapshot
    from shortly before stands in. `last_seq` is the number of the newest event.
    """

    begin: float = 0.0
    end: float = 0.0
    at: float | None = None
    dated: bool = True
    follows: bool = False
    exact: bool = True
    last_seq: int = 0

    @property
    def position(self) -> float:
        return self.end if self.at is None else self.at

    @property
    def share(self) -> float:
        """How much of the run lies before this moment, 0–1."""
        length = self.end - self.begin
        return 1.0 if length <= 0 else min(1.0, max(0.0, (self.position - self.begin) / length))

    @property
    def stands_still(self) -> bool:
        """Whether this moment is past, so that no age in it grows."""
        return self.at is not None or not self.follows

    def placed(self, share: float) -> float | None:
        """The position at a share of the run; None for the very end, which is the newest moment."""
        return self._within(self.begin + share * (self.end - self.begin))

    def moved(self, stride: Stride, by: int) -> float | None:
        """The position so many minutes or tenths later, None for the newest moment.

        Raises UsageError where the file has no times, nor steps of a trainer.
        """
        if stride is Stride.TENTH:
            return self._within(self.position + by * (self.end - self.begin) / 10)
        if not self.dated:
            raise UsageError(f"this file tells no {stride}s", "step through it by groups or tenths instead")
        return self._within(self.position + by * MINUTE_SECONDS)

    def _within(self, position: float) -> float | None:
        return None if position >= self.end else max(self.begin, position)


def neighbour(places: Sequence[float], position: float, by: int) -> float | None:
    """Of ascending places the one that lies `by` after the position (before it, when negative); None beyond the last.

    Before the first lies the first.
    """
    index = bisect_right(places, position) - 1 + by if by > 0 else bisect_left(places, position) + by
    if index >= len(places):
        return None
    return places[max(0, index)] if places else position
