"""Scores: how those of the newest groups are distributed, and how they went over the run."""

from __future__ import annotations

import math
from array import array
from collections import deque
from dataclasses import dataclass, replace

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import GroupScored, RunStarted
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.histogram import Histogram
from atropos_tui.monitor.part_shares import PartShares
from atropos_tui.monitor.score_parts import ScoreParts
from atropos_tui.monitor.score_statistics import finite, has_zero_advantage, mean_and_std, score_tolerance
from atropos_tui.monitor.snapshot import ScoresSection
from atropos_tui.monitor.token_looks import TokenLookout
from atropos_tui.monitor.trend import RecentTrend, Stretches, Trend

WINDOW_GROUPS = 256
WINDOW_ROLLOUTS = 8192


@dataclass(frozen=True, slots=True)
class _ScoredGroup:
    """`scores` are at most `WINDOW_ROLLOUTS`; the other numbers are of the whole group."""

    scores: array[float]
    rollouts: int
    mean: float
    std: float
    zero_advantage: bool
    completion_tokens: float
    truncated: int


class ScoresModel:
    """The window holds the newest groups, at most `WINDOW_GROUPS` of them and about `WINDOW_ROLLOUTS` scores.

    What only contents of groups tell, where none are seen, can be recalled from a snapshot that was kept.
    """

    def __init__(self) -> None:
        self._tolerance = 0.0
        self._groups = 0
        self._rollouts = 0
        self._window: deque[_ScoredGroup] = deque()
        self._window_scores = 0
        self._histogram = Histogram()
        self._trend = Trend()
        self._recent = RecentTrend()
        self._stretches = Stretches()
        self._parts = ScoreParts()
        self._shares = PartShares()
        self._lookout = TokenLookout()
        self._recalled: ScoresSection | None = None
        self._section: ScoresSection | None = ScoresSection()

    def handlers(self) -> Handlers:
        return {RunStarted: self._run_started, GroupScored: self._scored}

    def look(self, content: GroupContent, mono: float) -> None:
        """See what a group's content tells beside its scores: the parts of them, and the look of its tokens."""
        told_parts, looked = self._parts.take(content), self._lookout.take(content, mono)
        if told_parts:
            self._shares.take(content)
        if told_parts or looked:
            self._section = None

    def recall(self, kept: ScoresSection) -> None:
        """What contents told is from now on what this section says of it."""
        self._recalled = kept

    def section(self) -> ScoresSection:
        if self._section is None:
            self._section = self._build()
        if (kept := self._recalled) is None:
            return self._section
        return replace(self._section, parts=kept.parts, takeover=kept.takeover, looks=kept.looks, kept_at=kept.kept_at)

    def _run_started(self, event: RunStarted) -> None:
        self._tolerance = score_tolerance(event)

    def _scored(self, event: GroupScored) -> None:
        scores = finite(event.scores)
        if not scores:
            return
        mean, std = mean_and_std(scores)
        tokens = sum(event.completion_tokens) / max(1, len(event.completion_tokens))
        self._groups += 1
        self._rollouts += len(scores)
        self._trend.add(round(event.wall, 3), mean, tokens)
        self._recent.add(round(event.wall, 3), mean, tokens)
        self._stretches.add(mean)
        self._take(
            _ScoredGroup(
                scores=array("d", scores[:WINDOW_ROLLOUTS]),
                rollouts=len(scores),
                mean=mean,
                std=std,
                zero_advantage=has_zero_advantage(scores, self._tolerance),
                completion_tokens=tokens,
                truncated=max(0, event.truncated),
            )
        )
        self._section = None

    def _take(self, group: _ScoredGroup) -> None:
        self._window.append(group)
        self._window_scores += len(group.scores)
        self._histogram.add(group.scores)
        while len(self._window) > 1 and (len(self._window) > WINDOW_GROUPS or self._window_scores > WINDOW_ROLLOUTS):
            oldest = self._window.popleft()
            self._window_scores -= len(oldest.scores)
            self._histogram.remove(oldest.scores)
        if self._groups % WINDOW_GROUPS == 0:
            self._histogram.settle()

    def _build(self) -> ScoresSection:
        window = self._window
        if not window:
            return ScoresSection(parts=self._parts.section(), looks=self._lookout.section())
        rollouts = sum(group.rollouts for group in window)
        _, between_std = mean_and_std([group.mean for group in window])
        low, high = self._histogram.extent()
        histogram = self._histogram.view()
        return ScoresSection(
            groups=self._groups,
            rollouts=self._rollouts,
            window=len(window),
            mean=round(math.fsum(group.mean * group.rollouts for group in window) / rollouts, 6),
            low=low,
            high=high,
            edges=histogram.edges,
            bins=histogram.bins,
            spikes=histogram.spikes,
            trend=self._trend.points(),
            recent=self._recent.points(),
            within_std=round(math.fsum(group.std for group in window) / len(window), 6),
            between_std=round(between_std, 6),
            zero_advantage_share=round(sum(group.zero_advantage for group in window) / len(window), 4),
            first20=self._stretches.first,
            best20=self._stretches.best,
            last20=self._stretches.last,
            completion_tokens=round(math.fsum(group.completion_tokens for group in window) / len(window), 1),
            truncated_share=round(min(1.0, sum(group.truncated for group in window) / rollouts), 4),
            parts=self._parts.section(),
            takeover=self._shares.takeover(),
            looks=self._lookout.section(),
        )
