"""The header: what run this is, in which state, what it waits for, and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable

from atropos_tui.ledger.events import (
    CallFinished,
    EvalEnded,
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupScored,
    GroupSkipped,
    RunConfigured,
    RunEnded,
    RunStarted,
    StateChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.alerts import AT_WORK, AlertAges, Evidence, findings
from atropos_tui.monitor.asker import ASKER_LENGTH
from atropos_tui.monitor.bounded_text import ERROR_LENGTH, TRACEBACK_LENGTH, bounded_tail, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.headline import Situation, headline
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import (
    Alert,
    InferenceSection,
    LedgerSection,
    QueueSection,
    RecordSection,
    RunSection,
    ScoresSection,
    SendsSection,
    SkippedSection,
)


class RunModel:
    def __init__(self, alerts: AlertSettings) -> None:
        self._alerts = alerts
        self._started: RunStarted | None = None
        self._state = RunState.STARTING
        self._waiting_for = ""
        self._paused_by = ""
        self._ended: RunEnded | None = None
        self._step = 0
        self._total_steps = 0
        self._max_token_length = 0
        self._progress: float | None = None
        self._due_since: float | None = None
        self._loop_lag = 0.0
        self._loop_held_by = ""
        self._alert_ages = AlertAges()

    def handlers(self) -> Handlers:
        # A step of the trainer is none: other environments may have fed it.
        progress = (CallFinished, GroupScored, GroupEnqueued, GroupDelivered, GroupSkipped, EvalEnded)
        return {
            RunStarted: self._run_started,
            RunConfigured: self._configured,
            StateChanged: self._state_changed,
            RunEnded: self._run_ended,
            TrainerStatus: self._trainer_status,
            **dict.fromkeys(progress, self._progressed),
        }

    def note_loop(self, lag: float, held_by: str) -> None:
        """How late the author's event loop is, in seconds, and the line that holds it."""
        self._loop_lag = lag
        self._loop_held_by = held_by

    def recall(self, alerts: Iterable[Alert]) -> None:
        """Since when alerts had held that are found in the contents of groups only."""
        self._alert_ages.recall(alerts)

    def section(
        self,
        now: Instant,
        ledger: LedgerSection,
        queue: QueueSection,
        scores: ScoresSection,
        skipped: SkippedSection,
        sends: SendsSection,
        inference: InferenceSection,
        record: RecordSection,
    ) -> RunSection:
        started = self._started
        why_ended = one_line(self._ended.why, ERROR_LENGTH) if self._ended else ""
        quiet_for = self._quiet_for(now)
        says = headline(
            Situation(
                state=self._state,
                waiting_for=self._waiting_for,
                paused_by=self._paused_by,
                why_ended=why_ended,
                loop_held_by=self._loop_held_by,
                quiet_for=quiet_for,
                queue=queue,
                sends=sends,
                inference=inference,
            )
        )
        found = findings(
            Evidence(
                settings=self._alerts,
                state=self._state,
                now=now.at(now.mono),
                quiet_for=quiet_for,
                headline=says,
                loop_held_by=self._loop_held_by,
                throttle=queue.throttle,
                group_size=started.group_size if started else 0,
                ledger=ledger,
                scores=scores,
                skipped=skipped,
                sends=sends,
                inference=inference,
                record=record,
            )
        )
        return RunSection(
            run_id=started.run_id if started else "",
            environment=started.environment if started else "",
            file=started.file if started else "",
            pid=started.pid if started else 0,
            state=self._state,
            headline=says,
            started_at=now.at(started.mono) if started else 0.0,
            ended_at=now.at(self._ended.mono) if self._ended else 0.0,
            why_ended=why_ended,
            traceback=bounded_tail(self._ended.traceback, TRACEBACK_LENGTH) if self._ended else "",
            step=self._step,
            total_steps=self._total_steps,
            group_size=started.group_size if started else 0,
            max_token_length=self._max_token_length,
            tokenizer_name=started.tokenizer_name if started else "",
            last_progress_at=float(math.floor(now.at(self._progress))),
            loop_lag=self._loop_lag,
            loop_held_by=self._loop_held_by,
            alerts=self._alert_ages.dated(found, now.at(now.mono)),
        )

    def _quiet_for(self, now: Instant) -> float:
        """How long progress has been due and none was made."""
        if self._due_since is None:
            return 0.0
        return now.since(max(self._due_since, self._progress or self._due_since))

    def _run_started(self, event: RunStarted) -> None:
        self._started = event
        self._total_steps = event.total_steps
        self._max_token_length = event.max_token_length

    def _configured(self, event: RunConfigured) -> None:
        self._step = event.starting_step
        self._total_steps = event.total_steps
        self._max_token_length = event.max_token_len

    def _state_changed(self, event: StateChanged) -> None:
        if event.state not in AT_WORK:
            self._due_since = None
        elif self._due_since is None:
            self._due_since = event.mono
        self._state = event.state
        self._waiting_for = one_line(event.waiting_for, ERROR_LENGTH)
        self._paused_by = one_line(event.paused_by, ASKER_LENGTH)

    def _run_ended(self, event: RunEnded) -> None:
        self._ended = event
        self._state = event.state
        self._waiting_for = ""
        self._due_since = None

    def _trainer_status(self, event: TrainerStatus) -> None:
        self._step = event.step

    def _progressed(self, event: EventBase) -> None:
        if not getattr(event, "error", ""):
            self._progress = event.mono
