"""Tells observers how the run stands, once a change."""

from __future__ import annotations

import time

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import BacklogChanged, StateChanged, ThrottleChanged, TrainerStatus
from atropos_tui.ledger.outcomes import RunState, ThrottleReason
from atropos_tui.runtime.throttle import Limit

DETAIL_SECONDS = 0.5


class RunReport:
    """Publishes state, throttle, backlog and trainer status when they differ from what was told last.

    Numbers inside a throttle's detail move with every group; alone they are told at most twice a second.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._state: tuple[RunState, str, str] | None = None
        self._backlog = 0
        self._throttle: tuple[ThrottleReason | None, int, str] = (None, -1, "")
        self._throttle_told_at = 0.0
        self._throttle_due_at = 0.0
        self._trainer: dict[str, float] = {}

    def state(self, state: RunState, waiting_for: str = "", paused_by: str = "") -> None:
        if (state, waiting_for, paused_by) != self._state:
            self._state = (state, waiting_for, paused_by)
            self._stream.publish(StateChanged, state=state, waiting_for=waiting_for, paused_by=paused_by)

    def backlog(self, size: int) -> None:
        if size != self._backlog:
            self._backlog = size
            self._stream.publish(BacklogChanged, size=size)

    def throttle(self, limit: Limit, capacity: int, in_flight: int) -> None:
        """Tell what holds further groups back, or that one may start at once, and how many the numbers allow."""
        now = time.monotonic()
        holding = in_flight >= limit.groups
        news = (limit.reason if holding else None, capacity, limit.detail if holding else "")
        self._throttle_due_at = 0.0
        if news == self._throttle:
            return
        due_at = self._throttle_told_at + DETAIL_SECONDS
        if holding and self._throttle[0] is limit.reason and now < due_at:
            self._throttle_due_at = due_at
            return
        self._throttle, self._throttle_told_at = news, now
        reason, groups, detail = news
        self._stream.publish(ThrottleChanged, reason=reason, limit=groups, detail=detail)

    def throttle_due_at(self) -> float:
        """When numbers that were held back should be told; 0.0 for never."""
        return self._throttle_due_at

    def trainer(self, **status: float) -> None:
        if status != self._trainer:
            self._trainer = status
            self._stream.publish(TrainerStatus, **status)
