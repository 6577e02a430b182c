"""The model: events in, sections with versions out."""

from __future__ import annotations

from dataclasses import fields

from atropos_tui.ledger.events import (
    BacklogChanged,
    CallFinished,
    CallStarted,
    EvalEnded,
    EvalStarted,
    GroupDelivered,
    GroupRefused,
    GroupRequeued,
    GroupStageChanged,
    RunConfigured,
    SendFailed,
    ServerHealth,
    ThrottleChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import (
    DeliveredAs,
    Outcome,
    RequeueReason,
    ScoreSplit,
    SkipReason,
    Stage,
    ThrottleReason,
)
from atropos_tui.monitor.snapshot import SECTIONS, RunSnapshot
from tests.monitor.run_scenario import WALL_START, Scenario


def call(run: Scenario, group_id: int, seconds: float = 1.0, n: int = 4, error: str = "") -> None:
    run.publish(CallStarted, call_id=1, group_id=group_id, server=0, split="train", n=n)
    run.after(seconds)
    run.publish(
        CallFinished, call_id=1, group_id=group_id, server=0, split="train", n=n, latency=seconds,
        completion_tokens=0 if error else 40 * n, error=error, weight_version=None if error else 3,
    )  # fmt: skip


def changed(before: RunSnapshot, after: RunSnapshot) -> set[str]:
    return {name for name in SECTIONS if before.versions[name] != after.versions[name]}


def test_a_snapshot_has_every_section_from_the_start() -> None:
    snapshot = Scenario().snapshot()
    assert set(snapshot.versions) == set(SECTIONS)
    assert min(snapshot.versions.values()) == 1
    assert set(SECTIONS) == {field.name for field in fields(RunSnapshot)} - {"seq", "taken_at", "versions"}


def test_versions_grow_only_when_something_else_would_be_shown() -> None:
    run = Scenario()
    run.run_started()
    before = run.snapshot()
    run.after(0.25)
    assert changed(before, run.snapshot()) == set()

    run.publish(BacklogChanged, size=3)
    after = run.snapshot()
    assert changed(before, after) == {"queue"}
    assert after.scores is before.scores

    run.publish(BacklogChanged, size=3)
    assert changed(after, run.snapshot()) == set()


def test_rates_fall_with_time_alone() -> None:
    run = Scenario()
    run.run_started()
    run.delivered_group(0.0, 1.0)
    before = run.snapshot()
    run.after(70)
    after = run.snapshot()
    assert before.queue.groups_per_second > after.queue.groups_per_second == 0
    assert {"queue", "sends"} <= changed(before, after)
    assert changed(after, run.after(5).snapshot()) == set()


def test_a_row_in_flight_says_what_its_group_does() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.start_group("reverse 'abc'", rollouts=8)
    run.publish(CallStarted, call_id=1, group_id=group_id, server=2, split="train", n=8)
    (row,) = run.snapshot().queue.rows
    assert (row.rollouts_done, row.calls, row.server, row.stage) == (0, 1, 2, "collecting")
    assert row.started_at == WALL_START

    run.after(2)
    run.publish(
        CallFinished, call_id=1, group_id=group_id, server=2, split="train", n=8, latency=2.0, completion_tokens=80
    )
    run.publish(GroupStageChanged, group_id=group_id, stage=Stage.POSTPROCESSING)
    (row,) = run.snapshot().queue.rows
    assert (row.rollouts_done, row.completion_tokens, row.stage) == (8, 80, "postprocessing")

    run.score(group_id, 0.0, 1.0)
    run.enqueue(group_id)
    snapshot = run.snapshot()
    assert snapshot.queue.rows == ()
    assert (snapshot.queue.in_flight, snapshot.sends.outbox) == (0, 1)


def test_rollouts_that_wait_for_their_next_turn_are_not_done() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.start_group(rollouts=4)
    call(run, group_id, n=4)
    for turn in range(3):
        run.publish(CallStarted, call_id=10 + turn, group_id=group_id, server=0, split="train", n=1)
    (row,) = run.snapshot().queue.rows
    assert row.rollouts_done == 1


def test_what_a_judge_completes_is_no_rollout() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.start_group(rollouts=4)
    call(run, group_id, n=4)
    for number in (10, 11):
        run.publish(
            CallStarted, call_id=number, group_id=group_id, server=1, split="train", n=6, auxiliary=True
        )  # fmt: skip
    run.publish(
        CallFinished, call_id=10, group_id=group_id, server=1, split="train", n=6, latency=1.0, completion_tokens=80,
        finish_reasons=("length",), auxiliary=True,
    )  # fmt: skip
    (row,) = run.snapshot().queue.rows
    assert (row.rollouts_done, row.completion_tokens, row.calls, row.server) == (4, 160, 3, 1)
    run.score(group_id, 0.0, 1.0)
    run.skip(group_id)
    (ended,) = run.ended
    assert [each.server for each in ended.calls] == [0, 1]
    assert ended.row.finishes == ()


def test_a_server_that_appears_late_has_its_row() -> None:
    run = Scenario()
    run.run_started()
    health = {"server_type": "openai", "limit": 8, "eval_limit": 1}
    run.publish(ServerHealth, server=0, url="http://policy/v1", model_name="m", healthy=True, **health)
    before = run.snapshot()
    run.publish(ServerHealth, server=1, url="http://judge/v1", model_name="j", healthy=None, auxiliary=True, **health)
    after = run.snapshot()
    assert changed(before, after) == {"inference"}
    rows = [(row.server, row.url, row.healthy, row.auxiliary) for row in after.inference.servers]
    assert rows == [(0, "http://policy/v1", True, False), (1, "http://judge/v1", None, True)]


def test_the_queue_says_why_nothing_more_starts() -> None:
    run = Scenario()
    run.run_started()
    run.publish(ThrottleChanged, reason=ThrottleReason.OFF_POLICY_LIMIT, limit=4, detail="24 of 24 groups")
    run.publish(
        TrainerStatus, step=3, batch_size=32, queue_size=24, queue_limit=24, self_queue_size=24, env_weight=1.0,
        unallocated_fraction=1.0,
    )  # fmt: skip
    queue = run.snapshot().queue
    assert (queue.throttle, queue.throttle_detail, queue.limit) == ("off_policy_limit", "24 of 24 groups", 4)
    assert (queue.trainer_queue, queue.trainer_queue_limit) == (24, 24)
    run.after(3).publish(ThrottleChanged, reason=None, limit=4)
    assert run.snapshot().queue.throttle == ""
    assert run.after(1).snapshot().queue.held_by_trainer == 0.75


def test_the_trainers_pace_is_the_mean_over_its_newest_steps() -> None:
    run = Scenario()
    run.run_started()

    def trainer(step: int) -> float:
        run.publish(
            TrainerStatus, step=step, batch_size=4, queue_size=0, queue_limit=8, self_queue_size=0, env_weight=1.0,
            unallocated_fraction=1.0,
        )  # fmt: skip
        return run.snapshot().sends.seconds_per_step

    assert trainer(70) == 0.0
    run.after(1)
    assert trainer(71) == 0.0  # the first step may have begun long before
    run.after(4)
    assert trainer(72) == 4.0
    run.after(12)
    assert trainer(72) == 4.0
    assert trainer(74) == 5.3
    assert trainer(0) == 0.0


def test_skipped_groups_are_counted_by_reason_with_a_denominator() -> None:
    run = Scenario()
    run.run_started()
    for _ in range(3):
        run.skip(run.scored_group(1.0, 1.0), split=ScoreSplit.ALL_BEST)
    run.after(61)
    run.skip(run.scored_group(0.0, 0.0), split=ScoreSplit.ALL_WORST)
    run.skip(run.start_group(), SkipReason.TOO_LONG)
    run.delivered_group(0.0, 1.0)
    run.fail(run.start_group(), "RuntimeError: no such tool")
    run.publish(GroupRequeued, group_id=run.start_group(), reason=RequeueReason.HARD_PAUSE)
    skipped = run.snapshot().skipped
    assert [(reason.reason, reason.count, reason.last_minute) for reason in skipped.reasons] == [
        ("identical_scores", 4, 1), ("too_long", 1, 1), ("env_error", 1, 1),
    ]  # fmt: skip
    assert (skipped.total, skipped.last_minute, skipped.ended_last_minute) == (6, 3, 4)
    assert (skipped.all_best, skipped.all_worst, skipped.all_equal) == (3, 1, 0)
    assert [row.reason for row in skipped.recent[:2]] == ["env_error", "too_long"]
    assert skipped.recent[0].error == "RuntimeError: no such tool"
    assert skipped.in_a_row == 0


def test_zero_advantage_groups_in_a_row_are_counted_until_one_has_some() -> None:
    run = Scenario()
    run.run_started()
    for _ in range(25):
        run.skip(run.scored_group(0.0, 0.0), split=ScoreSplit.ALL_WORST)
    snapshot = run.snapshot()
    assert snapshot.skipped.in_a_row == 25
    (alert,) = snapshot.run.alerts
    assert alert.name == "zero_advantage"
    assert "25 groups in a row" in alert.text
    assert "too hard" in alert.text
    run.delivered_group(0.0, 1.0)
    assert run.snapshot().skipped.in_a_row == 0
    assert run.snapshot().run.alerts == ()


def test_an_ended_group_knows_its_beginning() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.start_group("the\n item", step=5)
    run.after(3.5)
    run.score(group_id, 0.5, 1.0, tokens=12)
    run.skip(group_id, SkipReason.STALE)
    (ended,) = run.ended
    row = ended.row
    assert (row.group_id, row.item, row.step, row.seconds) == (group_id, "the item", 5, 3.5)
    assert (row.outcome, row.reason, row.scores, row.completion_tokens) == (
        Outcome.SKIPPED, "stale", (0.5, 1.0), (12, 12),
    )  # fmt: skip
    assert row.at == WALL_START + 3.5


def test_sends_have_their_sizes_latencies_and_lag() -> None:
    run = Scenario()
    run.run_started()
    run.publish(
        RunConfigured, api_url="http://localhost:8000", env_id=0, starting_step=2, total_steps=50, batch_size=16,
        max_token_len=64,
    )  # fmt: skip
    group_id = run.start_group(step=2)
    run.score(group_id, 0.0, 1.0)
    run.enqueue(group_id)
    enqueued_at = run.snapshot().sends.oldest_in_outbox_at
    run.after(4)
    run.publish(
        TrainerStatus, step=5, batch_size=16, queue_size=1, queue_limit=8, self_queue_size=1, env_weight=1.0,
        unallocated_fraction=1.0,
    )  # fmt: skip
    run.publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.BUFFERED, latency=0.25, attempts=2)
    sends = run.snapshot().sends
    assert enqueued_at == WALL_START
    assert (sends.outbox, sends.delivered, sends.buffered, sends.oldest_in_outbox_at) == (0, 1, 1, 0.0)
    assert (sends.raw_bytes, sends.wire_bytes) == (1000, 400)
    assert (sends.latency_p50, sends.latency_p95) == (0.25, 0.25)
    assert (sends.trainer_step, sends.trainer_step_at, sends.policy_lag) == (5, WALL_START + 4, 3.0)
    assert sends.last_delivered_at == WALL_START + 4
    assert run.after(1).snapshot().sends.send_rate_history[-1] == 1.0


def test_the_lag_of_a_group_counts_the_steps_that_it_waited_for_the_trainer() -> None:
    run = Scenario()
    run.run_started()

    def trainer(step: int, waiting: int) -> float:
        run.publish(
            TrainerStatus, step=step, batch_size=4, queue_size=waiting, queue_limit=8, self_queue_size=waiting,
            env_weight=1.0, unallocated_fraction=1.0,
        )  # fmt: skip
        return run.snapshot().sends.lag_when_taken

    assert trainer(step=0, waiting=0) == -1.0
    for _ in range(2):
        group_id = run.start_group(step=0)
        run.score(group_id, 0.0, 1.0)
        run.enqueue(group_id)
        run.deliver(group_id)
    assert trainer(step=0, waiting=2) == -1.0
    # The first goes into the very next batch; the second waits while others fill five more.
    assert trainer(step=1, waiting=1) == 0.0
    assert trainer(step=5, waiting=1) == 0.0
    assert trainer(step=6, waiting=0) == 2.5
    assert run.snapshot().sends.policy_lag == 0.0


def test_a_failing_send_shows_error_body_and_next_try_until_one_arrives() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.scored_group(0.0, 1.0)
    run.enqueue(group_id)
    run.publish(SendFailed, error="HTTP 503", body="overloaded", attempts=1, retry_in=2.0)
    sends = run.snapshot().sends
    assert (sends.retries, sends.last_error, sends.last_error_body) == (1, "HTTP 503", "overloaded")
    assert sends.next_retry_at == sends.last_error_at + 2.0
    assert "HTTP 503; 1 group in the outbox" in run.snapshot().run.headline
    run.deliver(group_id)
    assert run.snapshot().sends.next_retry_at == 0.0
    assert run.snapshot().run.headline == ""


def test_a_refused_group_shows_what_the_api_answered() -> None:
    run = Scenario()
    run.run_started()
    group_id = run.scored_group(0.0, 1.0)
    run.enqueue(group_id)
    run.publish(GroupRefused, group_id=group_id, status=422, body="scores: field required")
    snapshot = run.snapshot()
    assert (snapshot.sends.refused, snapshot.sends.last_error) == (1, "HTTP 422")
    assert run.ended[0].body == "scores: field required"
    assert snapshot.skipped.reasons[0].reason == "http_422"


def test_a_server_row_has_load_latency_and_errors() -> None:
    run = Scenario()
    run.run_started()
    run.publish(
        ServerHealth, server=0, url="http://localhost:9001/v1", server_type="vllm", model_name="m", healthy=True,
        limit=512, eval_limit=64,
    )  # fmt: skip
    group_id = run.start_group()
    call(run, group_id, seconds=0.5)
    run.publish(CallStarted, call_id=2, group_id=None, server=0, split="eval", n=1)
    (server,) = run.snapshot().inference.servers
    assert (server.in_flight, server.eval_in_flight, server.limit, server.eval_limit) == (0, 1, 512, 64)
    assert (server.latency_p50, server.weight_version, server.requests) == (0.5, 3, 2)
    assert server.tokens_per_second == 160.0
    call(run, group_id, error="connect: refused")
    (server,) = run.snapshot().inference.servers
    assert (server.errors, server.last_error) == (1, "connect: refused")
    assert run.after(61).snapshot().inference.servers[0].latency_p50 == 0.0


def test_evals_are_newest_first_and_the_running_one_shows() -> None:
    run = Scenario()
    run.run_started()
    for step in (10, 20):
        run.publish(EvalStarted, step=step)
        assert run.snapshot().evals.running_step == step
        run.after(3)
        run.publish(EvalEnded, step=step, seconds=3.0, metrics={"eval/percent_correct": step / 100})
    evals = run.snapshot().evals
    assert [row.step for row in evals.rows] == [20, 10]
    assert evals.rows[0].metrics == {"eval/percent_correct": 0.2}
    assert evals.running_since_at == 0.0


def test_an_illegal_move_turns_the_ledger_red_and_nothing_else() -> None:
    run = Scenario()
    run.run_started()
    run.delivered_group(0.0, 1.0)
    before = run.snapshot()
    run.deliver(1)
    run.skip(77)
    after = run.snapshot()
    assert not after.ledger.balanced
    assert "group 77" in after.ledger.violation
    assert after.sends.delivered == before.sends.delivered == 1
    assert after.skipped == before.skipped
    assert [(alert.name, alert.severe) for alert in after.run.alerts] == [("ledger", True)]


def test_a_wall_clock_that_jumps_moves_dates_and_no_age() -> None:
    run = Scenario()
    run.run_started()
    run.start_group()
    run.after(10)
    before = run.snapshot()
    run.clock.wall_offset += 3600
    after = run.snapshot()
    assert after.taken_at - before.taken_at == 3600
    assert after.taken_at - after.queue.rows[0].started_at == 10
    assert after.taken_at - after.run.started_at == 10
