"""The way to the trainer: outbox, deliveries, retries, and how far the trainer's policy is ahead."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from atropos_tui.ledger.events import (
    GroupDelivered,
    GroupEnqueued,
    GroupRefused,
    OutboxUnwritable,
    RunConfigured,
    RunStarted,
    SendFailed,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import DeliveredAs, Outcome
from atropos_tui.monitor.bounded_text import BODY_LENGTH, ERROR_LENGTH, bounded_text, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import EndedRow, LedgerSection, SendsSection
from atropos_tui.monitor.windows import RecentAmounts, RecentDurations, significant

# A lag is the mean over this many groups.
LAG_WINDOW = 64
# Groups that wait at the trajectory API and whose start is remembered.
MAX_WAITING = 10_000
# The trainer's pace is the mean over so many changes of its step.
PACE_WINDOW = 16


class SendsModel:
    """Counts of groups are the ledger's; here is what the ledger doesn't know."""

    def __init__(self) -> None:
        self._api_url = ""
        self._raw_bytes = 0
        self._wire_bytes = 0
        self._retries = 0
        self._deliveries = RecentAmounts()
        self._latencies = RecentDurations()
        self._last_delivered: float | None = None
        self._last_error = ""
        self._last_error_body = ""
        self._last_error_at: float | None = None
        self._next_retry: float | None = None
        self._unwritable: OutboxUnwritable | None = None
        self._unwritable_since: float | None = None
        self._unwritten: set[int] = set()
        self._step = 0
        self._step_at: float | None = None
        self._steps: deque[tuple[float, int]] = deque(maxlen=PACE_WINDOW + 1)
        self._batch_size = 0
        self._trainer_queue = 0
        self._trainer_queue_limit = -1
        self._trainer_queue_own = 0
        self._lags: deque[int] = deque(maxlen=LAG_WINDOW)
        # The steps at which the groups that wait at the trajectory API were started, in the order of their delivery.
        self._waiting: deque[int] = deque(maxlen=MAX_WAITING)
        self._lags_when_taken: deque[int] = deque(maxlen=LAG_WINDOW)

    def handlers(self) -> Handlers:
        return {
            RunStarted: self._started,
            RunConfigured: self._configured,
            TrainerStatus: self._trainer_status,
            GroupEnqueued: self._enqueued,
            GroupDelivered: self._delivered,
            GroupRefused: self._refused,
            SendFailed: self._send_failed,
            OutboxUnwritable: self._unwritable_again,
        }

    def ended(self, row: EndedRow) -> None:
        """A group ended; a delivered one tells the policy lag. One that started before the step was known doesn't."""
        self._no_longer_unwritten(row.group_id)
        if row.outcome is Outcome.DELIVERED and self._step_at is not None:
            self._lags.append(max(0, self._step - row.step))
            self._waiting.append(row.step)

    def section(self, now: Instant, ledger: LedgerSection, oldest_in_outbox: float | None) -> SendsSection:
        p50, p95 = self._latencies.percentiles(now.mono)
        fault = self._unwritable
        return SendsSection(
            api_url=self._api_url,
            outbox=ledger.by_outcome[Outcome.IN_OUTBOX],
            oldest_in_outbox_at=now.at(oldest_in_outbox),
            delivered=ledger.by_outcome[Outcome.DELIVERED],
            buffered=ledger.by_reason.get(Outcome.DELIVERED, {}).get(DeliveredAs.BUFFERED, 0),
            refused=ledger.by_outcome[Outcome.REFUSED],
            delivered_per_second=self._deliveries.per_second(now.mono),
            last_delivered_at=now.at(self._last_delivered),
            latency_p50=p50,
            latency_p95=p95,
            raw_bytes=self._raw_bytes,
            wire_bytes=self._wire_bytes,
            retries=self._retries,
            last_error=self._last_error,
            last_error_body=self._last_error_body,
            last_error_at=now.at(self._last_error_at),
            next_retry_at=now.at(self._next_retry),
            trainer_step=self._step,
            trainer_step_at=now.at(self._step_at),
            seconds_per_step=self._pace(),
            batch_size=self._batch_size,
            trainer_queue=self._trainer_queue,
            trainer_queue_limit=self._trainer_queue_limit,
            trainer_queue_own=self._trainer_queue_own,
            policy_lag=_mean(self._lags, otherwise=0.0),
            lag_when_taken=_mean(self._lags_when_taken, otherwise=-1.0),
            send_rate_history=tuple(float(count) for count in self._deliveries.by_second(now.mono)),
            outbox_path=one_line(fault.path, ERROR_LENGTH) if fault else "",
            unwritable=one_line(fault.error, ERROR_LENGTH) if fault else "",
            unwritable_remedy=one_line(fault.remedy, ERROR_LENGTH) if fault else "",
            unwritable_since_at=now.at(self._unwritable_since),
            unwritten=len(self._unwritten),
        )

    def _started(self, event: RunStarted) -> None:
        """What an earlier process of the run had in its memory is gone with it."""
        del event
        self._unwritten.clear()
        self._unwritable = self._unwritable_since = None

    def _configured(self, event: RunConfigured) -> None:
        self._api_url = one_line(event.api_url, ERROR_LENGTH)
        self._batch_size = event.batch_size
        self._advance(event.starting_step, event.mono)

    def _trainer_status(self, event: TrainerStatus) -> None:
        self._batch_size = event.batch_size
        self._trainer_queue = event.queue_size
        self._trainer_queue_limit = event.queue_limit
        self._trainer_queue_own = event.self_queue_size
        self._advance(event.step, event.mono)
        # The trajectory API hands out the oldest first. A batch makes the next step, of the policy of the step before.
        while len(self._waiting) > event.self_queue_size:
            self._lags_when_taken.append(max(0, event.step - 1 - self._waiting.popleft()))

    def _advance(self, step: int, mono: float) -> None:
        if self._step_at is not None and step == self._step:
            return
        if step < self._step:
            self._steps.clear()
        # When the step at which the run joined was made, nobody knows.
        if self._step_at is not None:
            self._steps.append((mono, step))
        self._step, self._step_at = step, mono

    def _pace(self) -> float:
        if len(self._steps) < 2:
            return 0.0
        (first_at, first), (last_at, last) = self._steps[0], self._steps[-1]
        return significant((last_at - first_at) / (last - first), 2)

    def _enqueued(self, event: GroupEnqueued) -> None:
        self._raw_bytes += event.raw_bytes
        self._wire_bytes += event.wire_bytes
        self._no_longer_unwritten(event.group_id)

    def _delivered(self, event: GroupDelivered) -> None:
        self._deliveries.add(event.mono)
        self._latencies.add(event.mono, event.latency)
        self._last_delivered = event.mono
        self._next_retry = None

    def _refused(self, event: GroupRefused) -> None:
        self._note_error(f"HTTP {event.status}", event.body, event.mono)
        self._next_retry = None

    def _send_failed(self, event: SendFailed) -> None:
        self._retries += 1
        self._note_error(event.error, event.body, event.mono)
        self._next_retry = event.mono + event.retry_in

    def _unwritable_again(self, event: OutboxUnwritable) -> None:
        self._unwritten.add(event.group_id)
        self._unwritable = event
        if self._unwritable_since is None:
            self._unwritable_since = event.mono

    def _no_longer_unwritten(self, group_id: int) -> None:
        """The fault lasts until the last of the groups that met it is written, or ended otherwise."""
        self._unwritten.discard(group_id)
        if not self._unwritten:
            self._unwritable = self._unwritable_since = None

    def _note_error(self, error: str, body: str, mono: float) -> None:
        self._last_error = one_line(error, ERROR_LENGTH)
        self._last_error_body = bounded_text(body, BODY_LENGTH)
        self._last_error_at = mono


def _mean(lags: Sequence[int], otherwise: float) -> float:
    return round(math.fsum(lags) / len(lags), 2) if lags else otherwise
