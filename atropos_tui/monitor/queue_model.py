"""The rollout queue: what is in flight, what waits, and why nothing more starts."""

from __future__ import annotations

from atropos_tui.ledger.events import BacklogChanged, GroupScored, ThrottleChanged, TrainerStatus
from atropos_tui.ledger.outcomes import ThrottleReason
from atropos_tui.monitor.bounded_text import ERROR_LENGTH, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import InFlightRow, QueueSection
from atropos_tui.monitor.windows import RecentAmounts, RecentShare


class QueueModel:
    def __init__(self) -> None:
        self._backlog = 0
        self._throttle = ""
        self._throttle_detail = ""
        self._limit = 0
        self._trainer_queue = 0
        self._trainer_queue_limit = -1
        self._groups = RecentAmounts()
        self._rollouts = RecentAmounts()
        self._held_by_trainer = RecentShare()

    def handlers(self) -> Handlers:
        return {
            BacklogChanged: self._backlog_changed,
            ThrottleChanged: self._throttle_changed,
            TrainerStatus: self._trainer_status,
            GroupScored: self._scored,
        }

    def section(self, now: Instant, rows: tuple[InFlightRow, ...], in_flight: int) -> QueueSection:
        return QueueSection(
            rows=rows,
            in_flight=in_flight,
            limit=self._limit,
            backlog=self._backlog,
            throttle=self._throttle,
            throttle_detail=self._throttle_detail,
            trainer_queue=self._trainer_queue,
            trainer_queue_limit=self._trainer_queue_limit,
            rollouts_per_second=self._rollouts.per_second(now.mono),
            groups_per_second=self._groups.per_second(now.mono),
            held_by_trainer=self._held_by_trainer.share(now.mono),
        )

    def _backlog_changed(self, event: BacklogChanged) -> None:
        self._backlog = event.size

    def _throttle_changed(self, event: ThrottleChanged) -> None:
        self._throttle = event.reason or ""
        self._throttle_detail = one_line(event.detail, ERROR_LENGTH)
        self._limit = event.limit
        self._held_by_trainer.note(event.mono, event.reason is ThrottleReason.OFF_POLICY_LIMIT)

    def _trainer_status(self, event: TrainerStatus) -> None:
        self._trainer_queue = event.queue_size
        self._trainer_queue_limit = event.queue_limit

    def _scored(self, event: GroupScored) -> None:
        self._groups.add(event.mono)
        self._rollouts.add(event.mono, len(event.scores))
