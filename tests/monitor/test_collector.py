"""The sink under load: it never blocks, loses no group, and doesn't grow with chatter."""

from __future__ import annotations

import threading
import time

from atropos_tui.ledger import EventStream, GroupContent
from atropos_tui.ledger.events import EventBase, GroupSkipped, GroupStarted, LogLine
from atropos_tui.ledger.outcomes import SkipReason
from atropos_tui.monitor.collector import MAX_CONTENTS, MAX_LOG_LINES, Collector
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.run_view import RunView


def log(stream: EventStream, level: str = "INFO") -> None:
    stream.publish(LogLine, level=level, logger="env", text="a line")


def test_events_come_out_in_order() -> None:
    collector = Collector()
    stream = EventStream(collector)
    for group_id in range(1, 6):
        stream.publish(GroupStarted, group_id=group_id, item="x", rollouts=1, step=0)
        stream.keep(GroupContent(group_id, "x", ()))
    taken = [*collector.drain(4), *collector.drain(100)]
    assert [item.group_id for item in taken] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]  # type: ignore[union-attr]


def test_log_lines_that_pile_up_are_counted_and_no_group_is_lost() -> None:
    collector = Collector()
    stream = EventStream(collector)
    for group_id in range(1, 5001):
        stream.publish(GroupStarted, group_id=group_id, item="x", rollouts=1, step=0)
        log(stream)
        log(stream)
    log(stream, "error")
    taken = list(collector.drain(100_000))
    assert sum(isinstance(event, GroupStarted) for event in taken) == 5000
    lines = [event for event in taken if isinstance(event, LogLine)]
    assert len(lines) == MAX_LOG_LINES + 1
    assert lines[-1].level == "error"
    assert collector.take_dropped_log_lines() == {"INFO": 10_000 - MAX_LOG_LINES}
    assert collector.take_dropped_log_lines() == {}
    log(stream)
    assert len(list(collector.drain(10))) == 1


def test_of_contents_that_pile_up_the_newest_stay() -> None:
    collector = Collector()
    for group_id in range(3 * MAX_CONTENTS):
        collector.keep(GroupContent(group_id, "x", ()))
    taken = [item.group_id for item in collector.drain(10_000) if isinstance(item, GroupContent)]
    assert taken == list(range(2 * MAX_CONTENTS, 3 * MAX_CONTENTS))


def test_a_flood_from_several_threads_arrives_whole_while_it_is_drained() -> None:
    view = RunView(MemoryGroupStore())
    stream = EventStream(view.collector)
    threads, each = 4, 3000

    def publish(first: int) -> None:
        for group_id in range(first, first + each):
            stream.publish(GroupStarted, group_id=group_id, item="x", rollouts=2, step=0)
            stream.keep(GroupContent(group_id, "x", ()))
            stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.STALE)
            log(stream)

    publishers = [threading.Thread(target=publish, args=(1 + number * each,)) for number in range(threads)]
    for publisher in publishers:
        publisher.start()
    deadline = time.monotonic() + 60
    while any(publisher.is_alive() for publisher in publishers) and time.monotonic() < deadline:
        view.drain()
    while view.drain():
        pass
    snapshot = view.snapshot()
    assert snapshot.ledger.started == threads * each
    assert snapshot.skipped.total == threads * each
    assert snapshot.ledger.balanced
    seen = sum(row.count for row in snapshot.logs.rows)
    assert seen + snapshot.logs.dropped == threads * each


def test_an_event_the_model_cannot_take_leaves_the_monitor_running() -> None:
    class OddEvent(EventBase):
        @property
        def seq(self) -> int:  # type: ignore[override]
            raise RuntimeError("no number")

    view = RunView(MemoryGroupStore())
    view.collector.publish(OddEvent.model_construct(mono=0.0, wall=0.0))
    EventStream(view.collector).publish(GroupStarted, group_id=1, item="x", rollouts=1, step=0)
    view.drain()
    assert view.snapshot().ledger.started == 1
