"""One scored group as the server keeps it: its batch form as bytes, and the few numbers that queueing needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from atropos_tui.trajectory_api.stored_json import NOTHING, KeptJson


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """The scores of a group in four numbers; `spread` is their standard deviation."""

    mean: float
    low: float
    high: float
    spread: float

    @classmethod
    def of(cls, scores: list[float]) -> ScoreSummary:
        try:
            mean = sum(scores) / len(scores)
            variance = sum((score - mean) ** 2 for score in scores) / len(scores)
        except OverflowError:
            variance = math.inf
        if math.isfinite(variance):
            return cls(mean, min(scores), max(scores), variance**0.5)
        # Their squares, or their sum, are larger than any float.
        largest = max(map(abs, scores))
        shares = [score / largest / len(scores) for score in scores]
        mean = sum(shares)
        spread = (sum((share * len(scores) - mean) ** 2 for share in shares) / len(scores)) ** 0.5
        return cls(mean * largest, min(scores), max(scores), spread * largest)


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """A group that passed the checks at the door. `json` is the object as `/batch` hands it out, all 14 keys."""

    json: KeptJson
    env_id: int | None
    sequences: int
    tokens: int
    scores: ScoreSummary


class Place(StrEnum):
    """Where an accepted group is."""

    BUFFERED = "buffered"
    QUEUED = "queued"
    IN_DELIVERY = "in_delivery"
    DELIVERED = "delivered"
    DROPPED = "dropped"


@dataclass(slots=True, eq=False)
class QueuedGroup:
    """A group that was accepted. `number` counts accepted groups and gives the order; `received_at` is in Unix seconds.

    `key` is the idempotency key it came with, or empty. `stored` is replaced by a deflated form in the background, and
    by nothing when the group has left. `delivered_at_step` is -1 before it is delivered.
    """

    number: int
    env_id: int | None
    sequences: int
    tokens: int
    scores: ScoreSummary
    received_at: float
    stored: KeptJson = field(repr=False)
    key: str = ""
    place: Place = Place.QUEUED
    delivered_at_step: int = -1

    def leave(self, place: Place, step: int = -1) -> None:
        """The group is delivered or dropped: let go of its text."""
        self.place = place
        self.delivered_at_step = step
        self.stored = NOTHING
