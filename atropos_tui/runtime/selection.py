"""Greedy choice among alternatives."""

from __future__ import annotations

from collections.abc import Sequence


def select_best_index(
    primary_scores: Sequence[float],
    secondary_scores: Sequence[float],
    primary_higher_is_better: bool = True,
    secondary_lower_is_better: bool = True,
) -> int:
    """The index of the best primary score; the secondary score decides between equals, then the lower index.

    Raises ValueError when the lists are empty or of different lengths.
    """
    if not primary_scores or not secondary_scores:
        raise ValueError("a list of scores is empty")
    if len(primary_scores) != len(secondary_scores):
        raise ValueError(f"{len(primary_scores)} primary scores but {len(secondary_scores)} secondary ones")
    primary_sign = 1 if primary_higher_is_better else -1
    secondary_sign = -1 if secondary_lower_is_better else 1
    return max(
        range(len(primary_scores)),
        key=lambda index: (primary_sign * primary_scores[index], secondary_sign * secondary_scores[index], -index),
    )
