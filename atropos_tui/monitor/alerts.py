"""Conditions that an operator should look at, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import ENDED_STATES, Outcome, RunState, ThrottleReason
from atropos_tui.monitor.snapshot import (
    Alert,
    InferenceSection,
    LedgerSection,
    RecordSection,
    SendsSection,
    SkippedSection,
)

NO_PROGRESS_SECONDS = 60.0
# A trainer may take minutes for a step, and everything rightly waits for it.
TRAINER_SECONDS = 300.0
SEVERE_FACTOR = 5
ZERO_ADVANTAGE_GROUPS = 10
OUTBOX_SECONDS = 60.0
LOST_SHARE = 0.1
LOST_GROUPS = 3

# In these states progress is expected.
AT_WORK = frozenset({RunState.RUNNING, RunState.EVALUATING, RunState.PAUSING, RunState.FINISHING})
_WAITS_FOR_TRAINER = frozenset({ThrottleReason.OFF_POLICY_LIMIT, ThrottleReason.TRAINER_NOT_READY})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What alerts are found in. `quiet_for` is how long progress has been due, in seconds."""

    state: RunState
    now: float
    quiet_for: float
    headline: str
    loop_held_by: str
    throttle: str
    ledger: LedgerSection
    skipped: SkippedSection
    sends: SendsSection
    inference: InferenceSection
    record: RecordSection


@dataclass(frozen=True, slots=True)
class Finding:
    """An alert without its age."""

    name: str
    text: str
    severe: bool = False


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Severe ones first. Texts carry no ages, so that they change only when the facts do."""
    if not evidence.ledger.balanced:
        yield Finding("ledger", f"the ledger is out of balance: {evidence.ledger.violation}", severe=True)
    if evidence.state in ENDED_STATES:
        return
    if evidence.loop_held_by:
        yield Finding("loop_held", f"the event loop is held at {evidence.loop_held_by}", severe=True)
    yield from _recording_stopped(evidence.record)
    yield from _no_progress(evidence)
    yield from _servers_down(evidence.inference)
    yield from _zero_advantage(evidence.skipped)
    yield from _outbox_grows(evidence.sends, evidence.now)
    yield from _losses(evidence.skipped)


def _recording_stopped(record: RecordSection) -> Iterator[Finding]:
    if record.stopped:
        yield Finding("record", f"recording stopped: {record.stopped}; the run goes on", severe=True)


def _no_progress(evidence: Evidence) -> Iterator[Finding]:
    limit = TRAINER_SECONDS if evidence.throttle in _WAITS_FOR_TRAINER else NO_PROGRESS_SECONDS
    if evidence.quiet_for < limit:
        return
    severe = evidence.quiet_for >= SEVERE_FACTOR * limit
    why = f": {evidence.headline}" if evidence.headline else ""
    reached = limit * SEVERE_FACTOR if severe else limit
    yield Finding("no_progress", f"no progress for over {reached:.0f} s{why}", severe)


def _servers_down(inference: InferenceSection) -> Iterator[Finding]:
    down = [server for server in inference.servers if server.healthy is False]
    if down:
        example = f"{down[0].url} {down[0].detail}".rstrip()
        text = f"{len(down)} of {len(inference.servers)} inference servers down: {example}"
        yield Finding("servers_down", text, severe=len(down) == len(inference.servers))


def _zero_advantage(skipped: SkippedSection) -> Iterator[Finding]:
    if skipped.in_a_row >= ZERO_ADVANTAGE_GROUPS:
        newest = next((row.split for row in skipped.recent if row.split), "")
        which = f" ({newest})" if newest else ""
        text = f"{skipped.in_a_row} groups in a row with identical scores{which}: the trainer learns nothing from them"
        yield Finding("zero_advantage", text)


def _outbox_grows(sends: SendsSection, now: float) -> Iterator[Finding]:
    if sends.outbox and now - sends.oldest_in_outbox_at >= OUTBOX_SECONDS:
        why = f": {sends.last_error}" if sends.next_retry_at else ""
        text = f"{sends.outbox} groups in the outbox, the oldest for over {OUTBOX_SECONDS:.0f} s{why}"
        yield Finding("outbox", text)


def _losses(skipped: SkippedSection) -> Iterator[Finding]:
    """Groups that broke or were refused, when they are more than a share of what ended in the last minute."""
    for outcome, name in ((Outcome.FAILED, "failures"), (Outcome.REFUSED, "refusals")):
        lost = sum(reason.last_minute for reason in skipped.reasons if reason.outcome is outcome)
        if lost >= LOST_GROUPS and lost >= LOST_SHARE * skipped.ended_last_minute:
            error = next((row.error for row in skipped.recent if row.outcome is outcome), "")
            yield Finding(name, f"{lost} of {skipped.ended_last_minute} groups in the last minute {outcome}: {error}")


class AlertAges:
    """Remembers since when each alert has held."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def dated(self, found: Iterator[Finding], now: float) -> tuple[Alert, ...]:
        """The findings as alerts; `now` is Unix seconds."""
        alerts = tuple(
            Alert(finding.name, finding.text, self._since.get(finding.name, now), finding.severe) for finding in found
        )
        self._since = {alert.name: alert.since_at for alert in alerts}
        return alerts
