"""Groups that did not reach the trainer: how many, how fast, why, and the newest of them."""

from __future__ import annotations

from collections import Counter, deque

from atropos_tui.ledger.events import GroupScored, RunStarted
from atropos_tui.ledger.outcomes import Outcome, ScoreSplit
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.score_statistics import has_zero_advantage, score_tolerance
from atropos_tui.monitor.snapshot import EndedRow, ReasonCount, SkippedSection
from atropos_tui.monitor.windows import RecentAmounts

LOST_OUTCOMES = frozenset({Outcome.SKIPPED, Outcome.REJECTED, Outcome.FAILED, Outcome.REFUSED})
MAX_RECENT = 50
MAX_REASONS = 64


class _Recently:
    """How many in the last minute and in the last ten."""

    def __init__(self) -> None:
        self._minute = RecentAmounts(60)
        self._ten_minutes = RecentAmounts(600)

    def add(self, mono: float) -> None:
        self._minute.add(mono)
        self._ten_minutes.add(mono)

    def totals(self, mono: float) -> tuple[int, int]:
        return self._minute.total(mono), self._ten_minutes.total(mono)


class SkippedModel:
    """Requeued groups count nowhere here: their item comes again."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Outcome, str]] = Counter()
        self._recent_counts: dict[tuple[Outcome, str], _Recently] = {}
        self._ended = _Recently()
        self._splits: Counter[str] = Counter()
        self._tolerance = 0.0
        self._in_a_row = 0
        self._recent: deque[EndedRow] = deque(maxlen=MAX_RECENT)

    def handlers(self) -> Handlers:
        return {RunStarted: self._run_started, GroupScored: self._scored}

    def ended(self, row: EndedRow, mono: float) -> None:
        """A group ended at `mono`, whichever way."""
        if row.outcome is Outcome.REQUEUED:
            return
        self._ended.add(mono)
        if row.outcome not in LOST_OUTCOMES:
            return
        key = (row.outcome, row.reason)
        if key not in self._counts and len(self._counts) >= MAX_REASONS:
            key = (row.outcome, "other")
        self._counts[key] += 1
        self._recent_counts.setdefault(key, _Recently()).add(mono)
        if row.split:
            self._splits[row.split] += 1
        self._recent.appendleft(row)

    def section(self, now: Instant) -> SkippedSection:
        reasons = tuple(
            ReasonCount(outcome, reason, count, *self._recent_counts[outcome, reason].totals(now.mono))
            for (outcome, reason), count in self._counts.most_common()
        )
        ended_last_minute, ended_last_ten_minutes = self._ended.totals(now.mono)
        return SkippedSection(
            total=self._counts.total(),
            last_minute=sum(reason.last_minute for reason in reasons),
            ended_last_minute=ended_last_minute,
            last_ten_minutes=sum(reason.last_ten_minutes for reason in reasons),
            ended_last_ten_minutes=ended_last_ten_minutes,
            reasons=reasons,
            all_best=self._splits[ScoreSplit.ALL_BEST],
            all_worst=self._splits[ScoreSplit.ALL_WORST],
            all_equal=self._splits[ScoreSplit.ALL_EQUAL],
            in_a_row=self._in_a_row,
            recent=tuple(self._recent),
        )

    def _run_started(self, event: RunStarted) -> None:
        self._tolerance = score_tolerance(event)

    def _scored(self, event: GroupScored) -> None:
        self._in_a_row = self._in_a_row + 1 if has_zero_advantage(event.scores, self._tolerance) else 0
