"""How much of a score each of its named parts decides, and whether one has taken over while another fell.

The share of a part is the square of its correlation with the score within groups, where advantages come from: weights
and scales of the parts do not matter. That one part decides nearly all, and did not before, while another falls, is how
a reward that is being gamed looks from outside.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.bounded_text import one_line
from atropos_tui.monitor.score_parts import MAX_PARTS, PART_NAME_LENGTH
from atropos_tui.monitor.snapshot import PartTakeover

# As many groups at the beginning are compared with as many of the newest.
STRETCH = 64
# By less the share of a part may differ, and a mean move in deviations of the part, without anything having happened.
LEAST_GROWTH = 0.2
LEAST_FALL = 0.75
# Products of four of these stay finite.
_LARGEST = 1e60


@dataclass(frozen=True, slots=True)
class _PartOfGroup:
    """Variances over the rollouts of a group, and the covariance of part and score."""

    group_id: int
    mean: float
    variance: float
    score_variance: float
    covariance: float


class _Part:
    def __init__(self) -> None:
        self.groups = 0
        self.first: list[_PartOfGroup] = []
        self.newest: deque[_PartOfGroup] = deque(maxlen=STRETCH)

    def take(self, group: _PartOfGroup) -> None:
        self.groups += 1
        if len(self.first) < STRETCH:
            self.first.append(group)
        self.newest.append(group)

    @property
    def is_old_enough(self) -> bool:
        """Whether the newest groups are clearly later ones than the first."""
        return self.groups >= 3 * STRETCH

    @property
    def fall(self) -> float:
        """How far the mean has fallen, in deviations of the part at the beginning."""
        before = fmean(group.mean for group in self.first)
        between = fmean((group.mean - before) ** 2 for group in self.first)
        deviation = math.sqrt(between + fmean(group.variance for group in self.first))
        # What never varied at the beginning has no deviation to fall by.
        return (before - _mean(self.newest)) / max(deviation, 0.1 * abs(before), 1e-9)


class PartShares:
    """Takes groups in order; of more than `MAX_PARTS` names the first are followed."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}

    def take(self, content: GroupContent) -> None:
        names = {name: one_line(name, PART_NAME_LENGTH) for rollout in content.rollouts for name in rollout.parts}
        for name, shown in names.items():
            pairs = [pair for rollout in content.rollouts if (pair := _pair(rollout, name)) is not None]
            if len(pairs) > 1 and (shown in self._parts or len(self._parts) < MAX_PARTS):
                self._parts.setdefault(shown, _Part()).take(_part_of_group(content.group_id, pairs))

    def takeover(self) -> PartTakeover:
        """The part that decides most, if it did not before and another fell meanwhile; else an empty one."""
        old = {name: part for name, part in self._parts.items() if part.is_old_enough}
        if len(old) < 2:
            return PartTakeover()
        shares = {name: _share(part.newest) for name, part in old.items()}
        first, *others = sorted(old, key=lambda name: -shares[name])
        share_before = _share(old[first].first)
        fallen = max(others, key=lambda name: old[name].fall)
        if shares[first] - share_before < LEAST_GROWTH or old[fallen].fall < LEAST_FALL:
            return PartTakeover()
        shown_by = next((group.group_id for group in reversed(old[first].newest) if group.variance > 0), -1)
        return PartTakeover(
            part=first,
            share=round(shares[first], 3),
            share_before=round(share_before, 3),
            fallen=fallen,
            fallen_mean=round(_mean(old[fallen].newest), 6),
            fallen_mean_before=round(_mean(old[fallen].first), 6),
            group_id=shown_by,
        )


def _pair(rollout: Rollout, name: str) -> tuple[float, float] | None:
    """Part and score of a rollout that has both."""
    part, score = rollout.parts.get(name), rollout.score
    if part is None or score is None or not (math.isfinite(part) and math.isfinite(score)):
        return None
    return max(-_LARGEST, min(_LARGEST, float(part))), max(-_LARGEST, min(_LARGEST, float(score)))


def _part_of_group(group_id: int, pairs: Sequence[tuple[float, float]]) -> _PartOfGroup:
    many = len(pairs)
    mean, score_mean = sum(part for part, _ in pairs) / many, sum(score for _, score in pairs) / many
    apart = [(part - mean, score - score_mean) for part, score in pairs]
    return _PartOfGroup(
        group_id=group_id,
        mean=mean,
        variance=sum(part * part for part, _ in apart) / many,
        score_variance=sum(score * score for _, score in apart) / many,
        covariance=sum(part * score for part, score in apart) / many,
    )


def _share(groups: Sequence[_PartOfGroup]) -> float:
    """From 0 to 1; 0 where the scores or the part do not vary within groups."""
    varies = math.fsum(group.variance for group in groups) * math.fsum(group.score_variance for group in groups)
    return min(1.0, math.fsum(group.covariance for group in groups) ** 2 / varies) if varies > 0 else 0.0


def _mean(groups: Sequence[_PartOfGroup]) -> float:
    return fmean(group.mean for group in groups)
