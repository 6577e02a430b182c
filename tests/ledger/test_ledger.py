"""The equation: every started group is in exactly one outcome, and an illegal move shows."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from atropos_tui.ledger import EventStream, Outcome
from atropos_tui.ledger.events import (
    EVENT_ADAPTER,
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupRefused,
    GroupRejected,
    GroupRequeued,
    GroupSkipped,
    GroupStarted,
)
from atropos_tui.ledger.outcomes import DeliveredAs, FailReason, RejectReason, RequeueReason, SkipReason


def started(stream: EventStream, group_id: int) -> None:
    stream.publish(GroupStarted, group_id=group_id, item="x", rollouts=4, step=0)


def delivered(stream: EventStream, group_id: int) -> None:
    stream.publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.1, attempts=1)


class Collecting:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.events: list[EventBase] = []

    def publish(self, event: EventBase) -> None:
        self.events.append(event)

    def keep(self, content: object) -> None:
        del content


def test_a_group_goes_from_start_to_delivery() -> None:
    stream = EventStream()
    started(stream, 1)
    assert stream.counts().by_outcome[Outcome.IN_FLIGHT] == 1
    stream.publish(GroupEnqueued, group_id=1, raw_bytes=10, wire_bytes=5)
    assert stream.counts().by_outcome[Outcome.IN_OUTBOX] == 1
    delivered(stream, 1)
    counts = stream.counts()
    assert counts.by_outcome[Outcome.DELIVERED] == 1
    assert counts.by_reason[Outcome.DELIVERED] == {"received": 1}
    assert counts.balanced


@pytest.mark.parametrize("first", ["not started", "delivered before the outbox", "ended twice", "started twice"])
def test_an_illegal_move_unbalances_the_ledger(first: str) -> None:
    stream = EventStream()
    if first != "not started":
        started(stream, 1)
    if first == "ended twice":
        stream.publish(GroupRejected, group_id=1, reason=RejectReason.COLLECT_TRAJECTORIES)
    if first == "started twice":
        started(stream, 1)
    else:
        delivered(stream, 1)
    assert not stream.counts().balanced
    assert len(stream.violations) == 1


def test_events_are_numbered_without_gaps_and_survive_the_wire() -> None:
    sink = Collecting()
    stream = EventStream(sink)
    started(stream, 1)
    stream.publish(GroupRefused, group_id=1, status=422, body="no")
    assert [event.seq for event in sink.events] == [1, 2]
    for event in sink.events:
        assert EVENT_ADAPTER.validate_json(event.model_dump_json()) == event


class LedgerMachine(RuleBasedStateMachine):
    """Random lives of groups; the equation holds after every step."""

    flying = Bundle("flying")
    waiting = Bundle("waiting")

    def __init__(self) -> None:
        super().__init__()
        self.stream = EventStream()
        self.next_id = 0

    @rule(target=flying)
    def start(self) -> int:
        self.next_id += 1
        started(self.stream, self.next_id)
        return self.next_id

    @rule(target=waiting, group_id=consumes(flying))
    def enqueue(self, group_id: int) -> int:
        self.stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=1, wire_bytes=1)
        return group_id

    @rule(group_id=consumes(flying))
    def fail(self, group_id: int) -> None:
        self.stream.publish(GroupFailed, group_id=group_id, reason=FailReason.ENV_ERROR, error="KeyError: x")

    @rule(group_id=consumes(flying))
    def skip(self, group_id: int) -> None:
        self.stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.IDENTICAL_SCORES)

    @rule(group_id=consumes(flying))
    def requeue(self, group_id: int) -> None:
        self.stream.publish(GroupRequeued, group_id=group_id, reason=RequeueReason.HARD_PAUSE)

    @rule(group_id=consumes(waiting))
    def deliver(self, group_id: int) -> None:
        delivered(self.stream, group_id)

    @rule(group_id=consumes(waiting))
    def refuse(self, group_id: int) -> None:
        self.stream.publish(GroupRefused, group_id=group_id, status=422, body="no")

    @rule(group_id=consumes(waiting))
    def grow_stale(self, group_id: int) -> None:
        self.stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.STALE)

    @invariant()
    def balanced(self) -> None:
        counts = self.stream.counts()
        assert counts.balanced
        assert counts.started == self.next_id


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
