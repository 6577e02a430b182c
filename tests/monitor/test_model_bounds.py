"""Whatever a run does: its model stays small, agrees with the ledger, and can be sent."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from atropos_tui.ledger.events import (
    BacklogChanged,
    CallFinished,
    CallStarted,
    EvalEnded,
    EvalStarted,
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupRefused,
    GroupRejected,
    GroupRequeued,
    GroupScored,
    GroupSkipped,
    GroupStageChanged,
    GroupStarted,
    LogLine,
    OutboxUnwritable,
    RunEnded,
    SendFailed,
    ServerHealth,
    StateChanged,
    ThrottleChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import (
    DeliveredAs,
    FailReason,
    Outcome,
    RejectReason,
    RequeueReason,
    RunState,
    ScoreSplit,
    SkipReason,
    Stage,
    ThrottleReason,
)
from atropos_tui.monitor.logs_model import MAX_LINES
from atropos_tui.monitor.open_groups import MAX_ROWS, MAX_SCORES
from atropos_tui.monitor.skipped_model import MAX_REASONS, MAX_RECENT
from atropos_tui.monitor.snapshot import SECTIONS, RunSnapshot
from atropos_tui.monitor.trend import MAX_POINTS
from atropos_tui.monitor.wire import SnapshotEncoder, SnapshotMerger, to_json
from tests.monitor.run_scenario import Scenario

Step = tuple[type[EventBase], dict[str, Any]]

groups = st.integers(1, 12)
seconds = st.floats(0, 1e4)
numbers = st.floats(allow_nan=True, allow_infinity=True)
texts = st.one_of(st.text(max_size=20), st.just("x" * 50_000), st.just("\ud800\x1b[2J"))


def step(event_type: type[EventBase], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.fixed_dictionaries(fields).map(lambda made: (event_type, made))


steps = st.one_of(
    step(GroupStarted, group_id=groups, item=texts, rollouts=st.integers(0, 9), step=st.integers(0, 9)),
    step(GroupStageChanged, group_id=groups, stage=st.sampled_from(Stage)),
    step(
        GroupScored,
        group_id=groups,
        scores=st.lists(numbers, max_size=9).map(tuple),
        completion_tokens=st.lists(st.integers(0, 10**6), max_size=9).map(tuple),
        truncated=st.integers(0, 9),
    ),
    step(GroupEnqueued, group_id=groups, raw_bytes=st.integers(0, 10**9), wire_bytes=st.integers(0, 10**9)),
    step(GroupDelivered, group_id=groups, reason=st.sampled_from(DeliveredAs), latency=numbers, attempts=st.just(1)),
    step(
        GroupSkipped,
        group_id=groups,
        reason=st.sampled_from(SkipReason),
        split=st.none() | st.sampled_from(ScoreSplit),
        detail=texts,
    ),
    step(GroupRejected, group_id=groups, reason=st.sampled_from(RejectReason)),
    step(GroupFailed, group_id=groups, reason=st.sampled_from(FailReason), error=texts, traceback=texts),
    step(GroupRefused, group_id=groups, status=st.integers(400, 499), body=texts),
    step(GroupRequeued, group_id=groups, reason=st.sampled_from(RequeueReason)),
    step(OutboxUnwritable, group_id=groups, path=texts, error=texts, remedy=texts, retry_in=seconds),
    step(SendFailed, error=texts, body=texts, attempts=st.integers(1, 9), retry_in=seconds),
    step(
        CallStarted,
        call_id=st.just(1),
        group_id=st.none() | groups,
        server=st.integers(0, 3),
        split=st.sampled_from(["train", "eval"]),
        n=st.integers(1, 8),
    ),
    step(
        CallFinished,
        call_id=st.just(1),
        group_id=st.none() | groups,
        server=st.integers(0, 3),
        split=st.sampled_from(["train", "eval"]),
        n=st.integers(1, 8),
        latency=numbers,
        completion_tokens=st.integers(0, 10**6),
        error=st.just("") | texts,
    ),
    step(
        ServerHealth,
        server=st.integers(0, 3),
        url=texts,
        server_type=st.just("vllm"),
        model_name=texts,
        healthy=st.none() | st.booleans(),
        detail=texts,
        limit=st.just(8),
        eval_limit=st.just(1),
    ),
    step(EvalStarted, step=st.integers(0, 9)),
    step(
        EvalEnded,
        step=st.integers(0, 9),
        seconds=seconds,
        metrics=st.dictionaries(texts, numbers, max_size=3),
        error=texts,
        traceback=texts,
    ),
    step(BacklogChanged, size=st.integers(0, 10**6)),
    step(ThrottleChanged, reason=st.none() | st.sampled_from(ThrottleReason), limit=st.just(8), detail=texts),
    step(
        TrainerStatus,
        step=st.integers(0, 9),
        batch_size=st.just(8),
        queue_size=st.integers(0, 99),
        queue_limit=st.just(99),
        self_queue_size=st.just(0),
        env_weight=st.just(1.0),
        unallocated_fraction=st.just(1.0),
    ),
    step(StateChanged, state=st.sampled_from(RunState), waiting_for=texts),
    step(RunEnded, state=st.sampled_from([RunState.FINISHED, RunState.CRASHED]), why=texts, traceback=texts),
    step(LogLine, level=st.sampled_from(["INFO", "ERROR", "odd"]), logger=texts, text=texts, traceback=texts),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(steps, seconds), max_size=60))
def test_any_sequence_of_events_gives_a_snapshot_that_can_be_sent_and_agrees_with_the_ledger(
    story: list[tuple[Step, float]],
) -> None:
    run = Scenario()
    merger = SnapshotMerger()
    encoder = SnapshotEncoder()
    for (event_type, fields), pause in story:
        run.after(pause)
        run.publish(event_type, **fields)
        before, after = merger.snapshot, run.snapshot()
        body = encoder.encode(after, before.versions)
        if body is not None:
            assert merger.merge(body).versions == after.versions
    snapshot = run.snapshot()
    if story:
        assert all(to_json(getattr(merger.snapshot, name)) == to_json(getattr(snapshot, name)) for name in SECTIONS)
    counts = run.stream.counts()
    assert snapshot.ledger.started == counts.started
    assert snapshot.ledger.by_outcome == counts.by_outcome
    assert snapshot.ledger.by_reason == counts.by_reason
    assert snapshot.ledger.balanced == counts.balanced
    assert snapshot.queue.in_flight == len(snapshot.queue.rows) == counts.by_outcome[Outcome.IN_FLIGHT]
    lost = (Outcome.SKIPPED, Outcome.REJECTED, Outcome.FAILED, Outcome.REFUSED)
    assert snapshot.skipped.total == sum(counts.by_outcome[outcome] for outcome in lost)


def flood(run: Scenario, groups: int) -> None:
    """Groups of every outcome, each with words of its own wherever an event has words."""
    long = "y" * 20_000
    for number in range(groups):
        run.after(0.01)
        group_id = run.start_group(f"item {number} {long}", rollouts=4)
        server = number % 1000
        run.publish(CallStarted, call_id=number, group_id=group_id, server=server, split="train", n=100)
        run.publish(
            CallFinished, call_id=number, group_id=group_id, server=server, split="train", n=100, latency=1.0,
            completion_tokens=10, error=f"{long} {number}" if number % 3 else "",
        )  # fmt: skip
        run.score(group_id, *(((number + rollout) % 977) / 977 for rollout in range(100)))
        run.publish(LogLine, level="INFO", logger=long, text=_letters(number) + long, traceback=long)
        run.publish(EvalEnded, step=number, seconds=1.0, metrics={f"{index}{long}": 1.0 for index in range(3)})
        if number % 5 == 0:
            run.fail(group_id, f"{_letters(number)} {long}")
        elif number % 5 == 1:
            run.enqueue(group_id)
            run.publish(GroupRefused, group_id=group_id, status=400 + number % 1000, body=long)
        elif number % 5 == 2:
            run.skip(group_id)
        elif number % 5 == 3:
            run.enqueue(group_id)
            run.deliver(group_id)
        elif number % 50 != 4:
            run.publish(GroupRequeued, group_id=group_id, reason=RequeueReason.HARD_PAUSE)


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def json_size(snapshot: RunSnapshot) -> int:
    body = SnapshotEncoder().encode(snapshot, {})
    assert body is not None
    return len(body)


def test_a_flood_of_everything_stays_within_bounds() -> None:
    run = Scenario()
    run.run_started()
    flood(run, 3000)
    snapshot = run.snapshot()
    assert json_size(snapshot) < 1_000_000
    assert len(snapshot.queue.rows) <= MAX_ROWS
    assert len(snapshot.scores.trend) <= MAX_POINTS
    assert len(snapshot.skipped.recent) == MAX_RECENT
    assert all(len(row.scores) == MAX_SCORES for row in snapshot.skipped.recent)
    assert len(snapshot.skipped.reasons) <= MAX_REASONS + 4
    assert sum(reason.count for reason in snapshot.skipped.reasons) == snapshot.skipped.total
    assert len(snapshot.logs.rows) <= 2 * MAX_LINES
    assert snapshot.ledger.balanced


def test_memory_is_flat_once_the_windows_are_full() -> None:
    run = Scenario()
    run.run_started()
    flood(run, 2000)
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2000):
            run.skip(run.scored_group(0.25, 0.5, 1.0))
            run.delivered_group(0.25, 0.5, 0.75)
            run.ended.clear()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 200_000
