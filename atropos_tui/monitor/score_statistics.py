"""What one group's scores say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from atropos_tui.ledger.events import RunStarted

# Sums and squares of scores up to this stay finite.
_LARGEST = 1e100


def finite(values: Sequence[float]) -> tuple[float, ...]:
    """The values without NaN and infinities, and none so large that a sum could overflow."""
    return tuple(max(-_LARGEST, min(_LARGEST, value)) for value in values if math.isfinite(value))


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and population standard deviation of at least one value."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def has_zero_advantage(scores: Sequence[float], tolerance: float) -> bool:
    """Whether the scores of a group differ by `tolerance` or by rounding only: group-relative advantages are zero then.

    A group of one has nothing to be compared with and is not counted.
    """
    return len(scores) > 1 and math.isclose(min(scores), max(scores), rel_tol=1e-9, abs_tol=tolerance)


def score_tolerance(event: RunStarted) -> float:
    """From the configuration of the environment; 0.0 where it has none."""
    tolerance = event.config.get("score_tolerance")
    return float(tolerance) if isinstance(tolerance, int | float) and tolerance >= 0 else 0.0
