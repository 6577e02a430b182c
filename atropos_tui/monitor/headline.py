"""The one sentence that says what everything waits for now."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import RunState, ThrottleReason
from atropos_tui.monitor.bounded_text import ERROR_LENGTH, one_line
from atropos_tui.monitor.snapshot import InferenceSection, QueueSection, SendsSection

BREATH_SECONDS = 3.0
# What groups in flight wait for is worth a sentence when none of them has made progress for this long.
STALLED_SECONDS = 5.0
_NAMED_SERVERS = 3


@dataclass(frozen=True, slots=True)
class Situation:
    """What the headline is made of. `quiet_for` is how long progress has been due, in seconds."""

    state: RunState
    waiting_for: str
    paused_by: str
    why_ended: str
    loop_held_by: str
    quiet_for: float
    queue: QueueSection
    sends: SendsSection
    inference: InferenceSection


def headline(situation: Situation) -> str:
    """The most fundamental thing that is waited for; empty while groups flow."""
    return next(filter(None, (says(situation) for says in _IN_THIS_ORDER)), "")


def sends_fail(sends: SendsSection) -> bool:
    """Whether the newest thing known of sending is that it failed and will be tried again."""
    return sends.next_retry_at > 0 and sends.outbox > 0


def _ended(situation: Situation) -> str:
    if situation.state is RunState.CRASHED:
        return f"crashed: {situation.why_ended}"
    return f"finished: {situation.why_ended}" if situation.state is RunState.FINISHED else ""


def _loop_held(situation: Situation) -> str:
    held_by = situation.loop_held_by
    return f"the environment's code holds the event loop at {held_by}" if held_by else ""


def _disk(situation: Situation) -> str:
    """What is full, since when, and what helps, in this order, for the end is cut where there is little room."""
    sends = situation.sends
    if not sends.unwritable:
        return ""
    since = time.strftime("%H:%M:%S", time.localtime(sends.unwritable_since_at))
    path = f" {sends.outbox_path}" if sends.outbox_path else ""
    waiting = f"{_groups(sends.unwritten)} {'waits' if sends.unwritten == 1 else 'wait'} for room in the outbox{path}"
    return f"{sends.unwritable} since {since}: {sends.unwritable_remedy}; {waiting}"


def _waits(situation: Situation) -> str:
    if situation.waiting_for:
        return f"waiting for {situation.waiting_for}"
    return "waiting for the environment to set itself up" if situation.state is RunState.STARTING else ""


def _paused(situation: Situation) -> str:
    in_flight = situation.queue.in_flight
    by = f" by {situation.paused_by}" if situation.paused_by else ""
    if situation.state is RunState.PAUSING:
        ends = f"{_groups(in_flight)} in flight {'ends' if in_flight == 1 else 'end'} first"
        return f"paused{by}: {ends}" if by else f"pausing: {ends}"
    if situation.state is RunState.FINISHING:
        return f"finishing: {_groups(in_flight)} in flight, {situation.sends.outbox} in the outbox"
    return f"paused{by}: nothing starts until it is resumed" if situation.state is RunState.PAUSED else ""


def _sends(situation: Situation) -> str:
    sends = situation.sends
    if not sends_fail(sends):
        return ""
    kept = f"{_groups(sends.outbox)} in the outbox"
    says = _reason(sends.last_error_body)
    return f"waiting for the trajectory API at {sends.api_url}: {sends.last_error}{says and f' ({says})'}; {kept}"


def _reason(body: str) -> str:
    """Why the trajectory API took nothing, where its answer says so as our own does; empty otherwise."""
    try:
        told = json.loads(body)
    except ValueError:
        return ""
    reason = told.get("detail") if isinstance(told, dict) else None
    return one_line(reason, ERROR_LENGTH) if isinstance(reason, str) else ""


def _servers(situation: Situation) -> str:
    servers = [server for server in situation.inference.servers if not server.auxiliary]
    if not servers or any(server.healthy is not False for server in servers):
        return ""
    which = "the inference server at" if len(servers) == 1 else f"any of {len(servers)} inference servers, such as"
    detail = servers[0].detail or servers[0].last_error or "it does not answer"
    # A detail that begins with the address that was asked says it all in the room there is.
    return f"waiting for {which} {detail if detail.startswith('http') else f'{servers[0].url}: {detail}'}"


def _throttle(situation: Situation) -> str:
    says = _THROTTLES.get(situation.queue.throttle)
    detail = situation.queue.throttle_detail
    # A queue that fills and empties in turn is how a trainer is kept busy.
    breathes = situation.queue.throttle == ThrottleReason.OFF_POLICY_LIMIT and situation.quiet_for < BREATH_SECONDS
    if says is None or breathes:
        return ""
    if situation.queue.throttle == ThrottleReason.BACKING_OFF and detail:
        return f"{says}: {detail}"
    if situation.queue.throttle == ThrottleReason.OFF_POLICY_LIMIT:
        says = _full_queue(says, situation.queue, situation.sends)
        if pace := situation.sends.seconds_per_step:
            detail = f"{detail}; a step takes {pace:g} s"
    return f"{says} ({detail})" if detail else says


def _full_queue(says: str, queue: QueueSection, sends: SendsSection) -> str:
    """With what the trainer's queue is full: groups of others, or those in flight that have their place in it."""
    if 0 <= sends.trainer_queue < sends.trainer_queue_limit and queue.in_flight:
        return f"waiting for {_groups(queue.in_flight)} in flight or the trainer: they fill its queue"
    others = sends.trainer_queue_own * 2 < sends.trainer_queue
    return f"{says}, mostly with groups of other environments" if others else says


def _stalled(situation: Situation) -> str:
    queue = situation.queue
    if situation.quiet_for < STALLED_SECONDS:
        return ""
    if not queue.in_flight:
        return "waiting for the environment's code: no group is in flight and none starts"
    one = queue.in_flight == 1
    called = [server for server in situation.inference.servers if server.in_flight]
    if called:
        calls = sum(server.in_flight for server in called)
        open_calls = "1 open call" if calls == 1 else f"{calls} open calls"
        where = ", ".join(f"{server.url} {server.in_flight}" for server in called[:_NAMED_SERVERS])
        more = f" and {len(called) - _NAMED_SERVERS} more" if len(called) > _NAMED_SERVERS else ""
        waits = "waits" if one else "wait"
        return f"{_groups(queue.in_flight)} in flight {waits} for {open_calls} to inference servers ({where}{more})"
    # Who calls a server that is down waits without an open call.
    down = next((server for server in situation.inference.servers if server.healthy is False), None)
    if down is not None:
        detail = down.detail or down.last_error or "it does not answer"
        return f"{_groups(queue.in_flight)} in flight, no call is open: the server at {down.url} is down: {detail}"
    stages = Counter(row.stage for row in queue.rows)
    where = ", ".join(f"{count} {stage}" for stage, count in stages.most_common())
    if len(queue.rows) < queue.in_flight:
        where += f" of the {len(queue.rows)} longest in flight"
    is_or_are = "is" if one else "are"
    return f"{_groups(queue.in_flight)} in flight {is_or_are} in the environment's code ({where}), no call is open"


_IN_THIS_ORDER: tuple[Callable[[Situation], str], ...] = (
    _ended, _loop_held, _disk, _waits, _paused, _sends, _servers, _throttle, _stalled,
)  # fmt: skip

# A full set of workers is no news; pauses and the end have their own sentences.
_THROTTLES: dict[str, str] = {
    ThrottleReason.OFF_POLICY_LIMIT: "waiting for the trainer to take groups: its queue is full",
    ThrottleReason.EVAL: "waiting for the evaluation to end",
    ThrottleReason.NO_ITEMS: "waiting for an item from the environment",
    ThrottleReason.OUTBOX_FULL: "waiting for the trajectory API to take groups: the outbox is full",
    ThrottleReason.SERVERS_UNHEALTHY: "waiting for an inference server",
    ThrottleReason.TRAINER_NOT_READY: "waiting for the trainer",
    ThrottleReason.BACKING_OFF: "backing off",
}


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"
