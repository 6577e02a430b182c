"""Whether the scores of a group differ, and how identical ones compare with the rest of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import ScoreSplit

# Scores this far apart relative to their size differ only by rounding.
ROUNDING = 1e-9


def are_same(one: float, other: float, tolerance: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=tolerance)


def are_identical(scores: Sequence[float], tolerance: float) -> bool:
    """Whether a trainer could learn nothing from the scores of one group, since their spread is within `tolerance`."""
    return are_same(min(scores), max(scores), tolerance)


@dataclass(slots=True)
class ScoreRange:
    """The worst and the best score of the run so far."""

    tolerance: float
    worst: float = math.inf
    best: float = -math.inf

    def include(self, scores: Sequence[float]) -> None:
        self.worst = min(self.worst, *scores)
        self.best = max(self.best, *scores)

    def split(self, score: float) -> ScoreSplit:
        """How a group whose scores all are `score` compares with the run, which includes it.

        While the run knows one value only, convention decides: 1 and above is a solved task, 0 and below a failed one.
        """
        if are_same(self.worst, self.best, self.tolerance):
            if score >= 1.0 - self.tolerance:
                return ScoreSplit.ALL_BEST
            return ScoreSplit.ALL_WORST if score <= self.tolerance else ScoreSplit.ALL_EQUAL
        if are_same(score, self.best, self.tolerance):
            return ScoreSplit.ALL_BEST
        return ScoreSplit.ALL_WORST if are_same(score, self.worst, self.tolerance) else ScoreSplit.ALL_EQUAL
