"""Conditions that an operator should look at, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import (
    ENDED_STATES,
    FailReason,
    Outcome,
    RunState,
    ScoreSplit,
    SkipReason,
    ThrottleReason,
)
from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.snapshot import (
    Alert,
    InferenceSection,
    LedgerSection,
    PartTakeover,
    RecordSection,
    ScoresSection,
    SendsSection,
    SkippedSection,
    TokenLooks,
    TrendPoint,
)

SEVERE_FACTOR = 5
# Fewer looks or groups say nothing.
LEAST_LOOKS = 16
DRIFT_GROUPS = 64

# In these states progress is expected.
AT_WORK = frozenset({RunState.RUNNING, RunState.EVALUATING, RunState.PAUSING, RunState.FINISHING})
_SPLITS: dict[str, str] = {
    ScoreSplit.ALL_BEST: "too easy", ScoreSplit.ALL_WORST: "too hard", ScoreSplit.ALL_EQUAL: "neither best nor worst",
}  # fmt: skip
_FOUND_IN_CONTENTS = frozenset({"part_share", "repetition", "doubled_end", "garbled", "untrained"})
_WAITS_FOR_TRAINER = frozenset({ThrottleReason.OFF_POLICY_LIMIT, ThrottleReason.TRAINER_NOT_READY})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What alerts are found in. `quiet_for` is how long progress has been due, in seconds."""

    settings: AlertSettings
    state: RunState
    now: float
    quiet_for: float
    headline: str
    loop_held_by: str
    throttle: str
    group_size: int
    ledger: LedgerSection
    scores: ScoresSection
    skipped: SkippedSection
    sends: SendsSection
    inference: InferenceSection
    record: RecordSection


@dataclass(frozen=True, slots=True)
class Finding:
    """An alert without its age; `group_id` is a group that shows it, -1 where none does."""

    name: str
    text: str
    severe: bool = False
    group_id: int = -1


def findings(evidence: Evidence) -> Iterator[Finding]:
    """The most fundamental first. Texts carry no ages, so that they change only when the facts do."""
    if not evidence.ledger.balanced:
        yield Finding("ledger", f"the ledger is out of balance: {evidence.ledger.violation}", severe=True)
    if evidence.state in ENDED_STATES:
        return
    if evidence.loop_held_by:
        yield Finding("loop_held", f"the event loop is held at {evidence.loop_held_by}", severe=True)
    settings = evidence.settings
    yield from _recording_stopped(evidence.record)
    yield from _outbox_unwritable(evidence.sends)
    yield from _no_progress(evidence)
    yield from _servers_down(evidence.inference)
    yield from _zero_advantage(evidence.skipped, settings)
    yield from _queue_full(evidence)
    yield from _outbox_grows(evidence.sends, evidence.now, settings)
    yield from _losses(evidence.skipped, settings)
    yield from _unusable(evidence.skipped, settings)
    yield from _length_drift(evidence.scores, settings)
    yield from _part_takes_over(evidence.scores.takeover, settings)
    yield from _token_looks(evidence.scores.looks, settings)


def _recording_stopped(record: RecordSection) -> Iterator[Finding]:
    if record.stopped:
        yield Finding("record", f"recording stopped: {record.stopped}; the run goes on", severe=True)


def _outbox_unwritable(sends: SendsSection) -> Iterator[Finding]:
    if sends.unwritable:
        text = f"finished groups wait for room in the outbox {sends.outbox_path}".rstrip()
        yield Finding("disk", f"{sends.unwritable}: {sends.unwritable_remedy}; {text}", severe=True)


def _no_progress(evidence: Evidence) -> Iterator[Finding]:
    settings = evidence.settings
    limit = settings.trainer if evidence.throttle in _WAITS_FOR_TRAINER else settings.no_progress
    if evidence.quiet_for < limit:
        return
    severe = evidence.quiet_for >= SEVERE_FACTOR * limit
    why = f": {evidence.headline}" if evidence.headline else ""
    reached = limit * SEVERE_FACTOR if severe else limit
    yield Finding("no_progress", f"no progress for over {reached:g} s{why}", severe)


def _servers_down(inference: InferenceSection) -> Iterator[Finding]:
    """Severe when no rollout can be made, or nothing that the environment asks beside them is answered."""
    down = [server for server in inference.servers if server.healthy is False]
    if down:
        example = f"{down[0].url} {down[0].detail}".rstrip()
        text = f"{len(down)} of {len(inference.servers)} inference servers down: {example}"
        up = {server.auxiliary for server in inference.servers if server.healthy is not False}
        yield Finding("servers_down", text, severe=any(server.auxiliary not in up for server in down))


def _zero_advantage(skipped: SkippedSection, settings: AlertSettings) -> Iterator[Finding]:
    if skipped.in_a_row >= settings.zero_advantage_groups:
        newest = next((row.split for row in skipped.recent if row.split), "")
        which = f" ({_SPLITS.get(newest, newest)})" if newest else ""
        text = f"{skipped.in_a_row} groups in a row with identical scores{which}: the trainer learns nothing from them"
        yield Finding("zero_advantage", text)


def _queue_full(evidence: Evidence) -> Iterator[Finding]:
    """The trainer takes nothing although its queue is full: `/batch` is null, or the trainer doesn't ask."""
    sends = evidence.sends
    if not 0 < sends.trainer_queue_limit <= sends.trainer_queue or evidence.state not in AT_WORK:
        return
    seconds = evidence.settings.queue_full
    if evidence.now - max(sends.trainer_step_at, 0.0) < seconds:
        return
    full = f"the trainer's queue is full ({sends.trainer_queue} of {sends.trainer_queue_limit} groups)"
    sequences = sends.trainer_queue * evidence.group_size
    if sequences < sends.batch_size:
        why = f"{sequences} sequences are no batch of {sends.batch_size}, so /batch stays null"
        yield Finding("queue_full", f"{full}, and {why}: raise max_batches_offpolicy", severe=True)
    else:
        why = f"no step for over {seconds:.0f} s: the trainer does not ask, or /batch is null"
        yield Finding("queue_full", f"{full}, and {why}; {sends.api_url}/inspect/why says which")


def _outbox_grows(sends: SendsSection, now: float, settings: AlertSettings) -> Iterator[Finding]:
    if sends.outbox and now - sends.oldest_in_outbox_at >= settings.outbox:
        why = f": {sends.last_error}" if sends.next_retry_at else ""
        many = "1 group" if sends.outbox == 1 else f"{sends.outbox} groups"
        text = f"{many} in the outbox, the oldest for over {settings.outbox:.0f} s{why}"
        yield Finding("outbox", text)


def _losses(skipped: SkippedSection, settings: AlertSettings) -> Iterator[Finding]:
    """Groups that broke or were refused, when they are more than a share of what ended in the last minute."""
    for outcome, name in ((Outcome.FAILED, "failures"), (Outcome.REFUSED, "refusals")):
        lost = sum(
            reason.last_minute
            for reason in skipped.reasons
            if reason.outcome is outcome and reason.reason != FailReason.CANCELLED
        )
        if lost >= settings.lost_groups and lost >= settings.lost_share * skipped.ended_last_minute:
            newest = next((row for row in skipped.recent if row.outcome is outcome), None)
            error = newest.error if newest else ""
            text = f"{lost} of {skipped.ended_last_minute} groups in the last minute {outcome}: {error}"
            yield Finding(name, text, group_id=newest.group_id if newest else -1)


def _unusable(skipped: SkippedSection, settings: AlertSettings) -> Iterator[Finding]:
    """Groups that were made and are no data, by the most frequent reason; identical scores have their own alert."""
    ended = skipped.ended_last_minute
    # What the environment's own code rejects, it may mean to reject.
    shares = {Outcome.SKIPPED: settings.lost_share, Outcome.REJECTED: settings.rejected_share}
    found = [
        reason
        for reason in skipped.reasons
        if reason.outcome in shares
        and reason.reason != SkipReason.IDENTICAL_SCORES
        and reason.last_minute >= max(settings.lost_groups, shares[reason.outcome] * ended)
    ]
    if not found:
        return
    most = max(found, key=lambda reason: reason.last_minute)
    newest = next((row for row in skipped.recent if row.reason == most.reason), None)
    words = most.reason.replace("_", " ")
    how = f"skipped as {words}" if most.outcome is Outcome.SKIPPED else f"rejected: {most.reason} returned None"
    example = f": {newest.error}" if newest and newest.error else ""
    text = f"{most.last_minute} of {ended} groups in the last minute {how}{example}"
    yield Finding("unusable", text, group_id=newest.group_id if newest else -1)


def _length_drift(scores: ScoresSection, settings: AlertSettings) -> Iterator[Finding]:
    """Replies that grew a lot since the beginning, or shrank without scoring better: a reward may be being gamed."""
    if scores.groups < 3 * DRIFT_GROUPS:
        return
    before, mean_before = _mean_over(scores.trend)
    now, mean_now = _mean_over(scores.trend[::-1])
    if before <= 0 or now <= 0 or max(now / before, before / now) < settings.length_drift:
        return
    if now < before and mean_now > mean_before:
        return
    moved = f"{now / before:.1f} times as long as" if now > before else f"{before / now:.1f} times shorter than"
    lengths = f"replies are {moved} at the beginning ({before:.0f} → {now:.0f} tokens)"
    yield Finding("length_drift", f"{lengths}, while the mean score went from {mean_before:.2f} to {mean_now:.2f}")


def _mean_over(points: Sequence[TrendPoint]) -> tuple[float, float]:
    """Mean length and mean score of the first `DRIFT_GROUPS` groups or a few more."""
    groups, tokens, mean = 0, 0.0, 0.0
    for point in points:
        tokens += point.completion_tokens * point.groups
        mean += point.mean * point.groups
        groups += point.groups
        if groups >= DRIFT_GROUPS:
            break
    return tokens / max(1, groups), mean / max(1, groups)


def _part_takes_over(takeover: PartTakeover, settings: AlertSettings) -> Iterator[Finding]:
    """One part of the score decides nearly all of it: what is rewarded may no longer be what is wanted."""
    if not takeover.part or takeover.share < settings.part_share:
        return
    decides = f"`{takeover.part}` alone decides {takeover.share:.0%} of the score"
    before = f"({takeover.share_before:.0%} at the beginning)"
    fell = f"`{takeover.fallen}` fell from {takeover.fallen_mean_before:.2f} to {takeover.fallen_mean:.2f}"
    yield Finding("part_share", f"{decides} {before}, while {fell}", group_id=takeover.group_id)


def _token_looks(looks: TokenLooks, settings: AlertSettings) -> Iterator[Finding]:
    if looks.rollouts < LEAST_LOOKS:
        return
    of = f"of the last {looks.rollouts} rollouts looked at"
    if looks.repetitive and looks.repetitive >= settings.repetition * looks.rollouts:
        text = f"{looks.repetitive} {of} go round in circles: most of their sequences of four tokens occurred before"
        yield Finding("repetition", text, group_id=looks.repetitive_group)
    if looks.doubled_end and looks.doubled_end >= settings.doubled_end * looks.rollouts:
        text = (
            f"in {looks.doubled_end} {of} the end-of-turn token ({looks.end_token}) stands twice in a row:"
            " it is sampled, and the chat template or the environment adds another"
        )
        yield Finding("doubled_end", text, group_id=looks.doubled_end_group)
    if looks.garbled and looks.garbled >= settings.garbled * looks.rollouts:
        text = f"{looks.garbled} {of} are noise: sampled as good as at random, or with characters that no text has"
        yield Finding("garbled", text, group_id=looks.garbled_group)
    if looks.untrained and looks.untrained >= settings.untrained * looks.rollouts:
        text = f"the chat template may drop reasoning: {looks.untrained} {of} are trained on little of their text"
        yield Finding("untrained", text, group_id=looks.untrained_group)


class AlertAges:
    """Remembers since when each alert has held."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def recall(self, alerts: Iterable[Alert]) -> None:
        """Those of a moment before, of the kinds that are found in the contents of groups only."""
        for alert in alerts:
            if alert.name in _FOUND_IN_CONTENTS:
                self._since[alert.name] = alert.since_at

    def dated(self, found: Iterator[Finding], now: float) -> tuple[Alert, ...]:
        """The findings as alerts; `now` is Unix seconds."""
        alerts = tuple(
            Alert(finding.name, finding.text, self._since.get(finding.name, now), finding.severe, finding.group_id)
            for finding in found
        )
        self._since = {alert.name: alert.since_at for alert in alerts}
        return alerts
