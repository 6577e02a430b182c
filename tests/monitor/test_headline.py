"""What everything waits for, in one sentence; and what an operator should look at."""

from __future__ import annotations

import time

import pytest

from atropos_tui.ledger.events import (
    CallFinished,
    CallStarted,
    GroupRefused,
    GroupRejected,
    GroupRequeued,
    GroupStageChanged,
    OutboxUnwritable,
    RunEnded,
    SendFailed,
    ServerHealth,
    StateChanged,
    ThrottleChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import RejectReason, RequeueReason, RunState, SkipReason, Stage, ThrottleReason
from tests.monitor.run_scenario import WALL_START, Scenario


def server(run: Scenario, number: int, healthy: bool | None, detail: str = "", auxiliary: bool = False) -> None:
    run.publish(
        ServerHealth, server=number, url=f"http://gpu{number}:9001/v1", server_type="vllm", model_name="m",
        healthy=healthy, detail=detail, limit=8, eval_limit=1, auxiliary=auxiliary,
    )  # fmt: skip


def names(run: Scenario) -> list[str]:
    return [alert.name for alert in run.snapshot().run.alerts]


@pytest.fixture
def run() -> Scenario:
    run = Scenario()
    run.run_started()
    return run


def test_there_is_no_headline_while_groups_flow(run: Scenario) -> None:
    run.publish(ThrottleChanged, reason=ThrottleReason.MAX_NUM_WORKERS, limit=8, detail="8 of 8")
    run.start_group()
    run.delivered_group(0.0, 1.0)
    assert run.snapshot().run.headline == ""
    assert names(run) == []


def test_a_run_that_starts_says_what_it_waits_for(run: Scenario) -> None:
    run.publish(StateChanged, state=RunState.STARTING, waiting_for="the trajectory API at http://localhost:8000")
    assert run.snapshot().run.headline == "waiting for the trajectory API at http://localhost:8000"
    run.after(3600)
    assert names(run) == []


def test_pausing_names_the_groups_that_end_first(run: Scenario) -> None:
    run.start_group()
    run.publish(StateChanged, state=RunState.PAUSING)
    assert run.snapshot().run.headline == "pausing: 1 group in flight ends first"
    run.publish(StateChanged, state=RunState.PAUSED)
    assert run.snapshot().run.headline == "paused: nothing starts until it is resumed"
    run.after(3600)
    assert names(run) == []


def test_a_paused_run_says_who_paused_it(run: Scenario) -> None:
    run.start_group()
    by = "ada@login1 (screen)"
    run.publish(StateChanged, state=RunState.PAUSING, paused_by=by)
    assert run.snapshot().run.headline == f"paused by {by}: 1 group in flight ends first"
    run.publish(StateChanged, state=RunState.PAUSED, paused_by=by)
    assert run.snapshot().run.headline == f"paused by {by}: nothing starts until it is resumed"
    run.publish(StateChanged, state=RunState.RUNNING)
    assert run.snapshot().run.headline == ""


def test_a_full_trainer_queue_is_what_everything_waits_for(run: Scenario) -> None:
    run.publish(ThrottleChanged, reason=ThrottleReason.OFF_POLICY_LIMIT, limit=8, detail="24 of 24 groups")
    run.delivered_group(0.0, 1.0)
    assert run.snapshot().run.headline == ""
    run.after(5)
    assert "for the trainer" in run.snapshot().run.headline
    assert "24 of 24 groups" in run.snapshot().run.headline
    run.after(120)
    assert names(run) == []
    run.after(200)
    assert names(run) == ["no_progress"]


def test_one_server_down_is_an_alert_and_all_of_them_the_headline(run: Scenario) -> None:
    server(run, 0, True)
    server(run, 1, False, "connection refused")
    assert run.snapshot().run.headline == ""
    (alert,) = run.snapshot().run.alerts
    assert (alert.name, alert.severe) == ("servers_down", False)
    assert "1 of 2" in alert.text
    assert "http://gpu1:9001/v1 connection refused" in alert.text
    server(run, 0, False, "HTTP 500")
    assert run.snapshot().run.headline.startswith("waiting for any of 2 inference servers")
    assert run.snapshot().run.alerts[0].severe


def test_a_judge_that_is_down_is_a_severe_alert_and_not_the_headline(run: Scenario) -> None:
    server(run, 0, True)
    server(run, 1, False, "connection refused", auxiliary=True)
    assert run.snapshot().run.headline == ""
    (alert,) = run.snapshot().run.alerts
    assert (alert.name, alert.severe) == ("servers_down", True)
    assert alert.text == "1 of 2 inference servers down: http://gpu1:9001/v1 connection refused"


def test_groups_that_stall_without_an_open_call_are_put_down_to_the_judge_that_is_down(run: Scenario) -> None:
    server(run, 0, True)
    server(run, 1, False, "connection refused", auxiliary=True)
    run.start_group()
    run.after(6)
    assert run.snapshot().run.headline == (
        "1 group in flight, no call is open: the server at http://gpu1:9001/v1 is down: connection refused"
    )


def test_a_judge_that_answers_hides_nothing_of_a_policy_that_does_not(run: Scenario) -> None:
    server(run, 0, False, "HTTP 500")
    server(run, 1, True, auxiliary=True)
    section = run.snapshot().run
    assert section.headline == "waiting for the inference server at http://gpu0:9001/v1: HTTP 500"
    assert section.alerts[0].severe


def test_the_line_that_holds_the_loop_comes_before_all_else(run: Scenario) -> None:
    run.publish(ThrottleChanged, reason=ThrottleReason.OUTBOX_FULL, limit=8)
    run.model.note_loop(4.2, "env.py:17 in score")
    section = run.snapshot().run
    assert section.loop_lag == 4.2
    assert "env.py:17 in score" in section.headline
    assert [alert.name for alert in section.alerts] == ["loop_held"]
    run.model.note_loop(0.0, "")
    assert "outbox is full" in run.snapshot().run.headline


def test_groups_that_hang_say_where(run: Scenario) -> None:
    first = run.start_group()
    run.publish(CallStarted, call_id=1, group_id=first, server=0, split="train", n=4)
    run.after(20)
    assert run.snapshot().run.headline.startswith("1 group in flight waits for 1 open call to inference servers (")
    run.publish(CallFinished, call_id=1, group_id=first, server=0, split="train", n=4, latency=20.0)
    run.publish(GroupStageChanged, group_id=first, stage=Stage.POSTPROCESSING)
    run.after(70)
    assert "in the environment's code (1 postprocessing)" in run.snapshot().run.headline
    (alert,) = run.snapshot().run.alerts
    assert (alert.name, alert.severe) == ("no_progress", False)
    run.after(300)
    assert run.snapshot().run.alerts[0].severe
    run.delivered_group(0.0, 1.0)
    assert names(run) == []


def test_failures_are_no_progress(run: Scenario) -> None:
    run.delivered_group(0.0, 1.0)
    for _ in range(14):
        run.after(5)
        run.fail(run.start_group())
    assert names(run) == ["no_progress", "failures"]
    assert "12 of 12 groups" in run.snapshot().run.alerts[1].text
    assert "KeyError: 'x'" in run.snapshot().run.alerts[1].text


def trainer_steps(run: Scenario, step: int) -> None:
    run.publish(
        TrainerStatus, step=step, batch_size=4, queue_size=8, queue_limit=8, self_queue_size=0, env_weight=0.5,
        unallocated_fraction=0.0,
    )  # fmt: skip


def test_a_trainer_that_others_feed_is_no_progress_of_a_run_that_stands_still(run: Scenario) -> None:
    run.delivered_group(0.0, 1.0)
    run.publish(ThrottleChanged, reason=ThrottleReason.OFF_POLICY_LIMIT, limit=8, detail="8/8 groups")
    for step in range(10):
        trainer_steps(run.after(1), step)
    section = run.snapshot().run
    assert section.headline == (
        "waiting for the trainer to take groups: its queue is full, mostly with groups of other environments"
        " (8/8 groups; a step takes 1 s)"
    )
    assert section.last_progress_at == WALL_START


def test_a_queue_that_is_full_only_with_what_is_in_flight_is_not_said_to_be_full(run: Scenario) -> None:
    run.start_group()
    run.publish(ThrottleChanged, reason=ThrottleReason.OFF_POLICY_LIMIT, limit=1, detail="7/8 groups")
    run.publish(
        TrainerStatus, step=1, batch_size=4, queue_size=7, queue_limit=8, self_queue_size=7, env_weight=1.0,
        unallocated_fraction=0.0,
    )  # fmt: skip
    run.after(9)
    assert run.snapshot().run.headline == (
        "waiting for 1 group in flight or the trainer: they fill its queue (7/8 groups)"
    )


def test_groups_that_hang_are_named_while_the_trainer_takes_those_of_others(run: Scenario) -> None:
    run.start_group()
    for step in range(70):
        trainer_steps(run.after(1), step)
    assert "in the environment's code (1 collecting)" in run.snapshot().run.headline
    assert names(run) == ["no_progress"]


def test_groups_that_are_no_data_are_an_alert_that_shows_one(run: Scenario) -> None:
    for _ in range(4):
        run.delivered_group(0.0, 1.0)
        wrong = run.start_group()
        run.skip(wrong, SkipReason.NO_TRAINABLE_TOKENS)
    (alert,) = run.snapshot().run.alerts
    assert (alert.name, alert.group_id) == ("unusable", wrong)
    assert alert.text == "4 of 8 groups in the last minute skipped as no trainable tokens: as told"


def test_what_the_environment_rejects_is_an_alert_when_it_is_most_of_it(run: Scenario) -> None:
    for _ in range(5):
        run.delivered_group(0.0, 1.0)
    for _ in range(4):
        run.publish(GroupRejected, group_id=run.start_group(), reason=RejectReason.COLLECT_TRAJECTORIES)
    assert names(run) == []
    run.publish(GroupRejected, group_id=run.start_group(), reason=RejectReason.COLLECT_TRAJECTORIES)
    (alert,) = run.snapshot().run.alerts
    assert alert.text == "5 of 10 groups in the last minute rejected: collect_trajectories returned None"


def test_refusals_are_an_alert_of_their_own(run: Scenario) -> None:
    for _ in range(3):
        group_id = run.scored_group(0.0, 1.0)
        run.enqueue(group_id)
        run.publish(GroupRefused, group_id=group_id, status=422, body="group too large")
    assert names(run) == ["refusals"]
    assert "HTTP 422: group too large" in run.snapshot().run.alerts[0].text


def unwritable(run: Scenario, group_id: int) -> None:
    run.publish(
        OutboxUnwritable, group_id=group_id, path="/scratch/r/outbox.db", error="the disk is full",
        remedy="free space on /scratch", retry_in=10.0,
    )  # fmt: skip


def test_a_full_disk_is_told_first_with_its_beginning_its_remedy_and_what_waits(run: Scenario) -> None:
    run.publish(StateChanged, state=RunState.FINISHING, waiting_for="groups in flight")
    run.enqueue(run.scored_group(0.0, 1.0))
    run.publish(SendFailed, error="connection refused", attempts=1, retry_in=1.0)
    since = time.strftime("%H:%M:%S", time.localtime(run.clock.wall()))
    unwritable(run, run.scored_group(0.0, 1.0))
    unwritable(run.after(40), run.scored_group(0.0, 1.0))
    sends = run.snapshot().sends
    assert run.snapshot().run.headline == (
        f"the disk is full since {since}: free space on /scratch; "
        "2 groups wait for room in the outbox /scratch/r/outbox.db"
    )
    assert (sends.unwritten, run.snapshot().taken_at - sends.unwritable_since_at) == (2, 40.0)
    disk = next(alert for alert in run.snapshot().run.alerts if alert.name == "disk")
    assert disk.severe
    assert "free space on /scratch" in disk.text


def test_a_full_disk_is_over_when_every_group_that_met_it_is_written_or_ended(run: Scenario) -> None:
    written, given_back, later = (run.scored_group(0.0, 1.0) for _ in range(3))
    unwritable(run, written)
    unwritable(run, given_back)
    run.enqueue(later)
    run.enqueue(written)
    assert "1 group waits for room" in run.snapshot().run.headline
    run.publish(GroupRequeued, group_id=given_back, reason=RequeueReason.SHUTDOWN)
    snapshot = run.snapshot()
    assert (snapshot.run.headline, snapshot.sends.unwritable, snapshot.sends.unwritable_since_at) == ("", "", 0.0)
    assert "disk" not in names(run)


def test_what_a_dead_worker_could_not_write_is_no_fault_of_the_next(run: Scenario) -> None:
    unwritable(run, run.scored_group(0.0, 1.0))
    run.run_started()
    assert (run.snapshot().sends.unwritten, run.snapshot().run.headline) == (0, "")


def test_the_reason_that_the_trajectory_api_gives_is_in_the_headline(run: Scenario) -> None:
    run.enqueue(run.scored_group(0.0, 1.0))
    body = '{"detail": "the journal /j.sqlite cannot be written: database or disk is full"}'
    run.publish(SendFailed, error="HTTP 503", body=body, attempts=1, retry_in=1.0)
    assert "HTTP 503 (the journal /j.sqlite cannot be written: database or disk is full); 1 group" in (
        run.snapshot().run.headline
    )
    run.publish(SendFailed, error="HTTP 502", body="<html>Bad gateway</html>", attempts=2, retry_in=1.0)
    assert "HTTP 502; 1 group" in run.snapshot().run.headline


def test_an_outbox_that_grows_old_is_an_alert_with_its_cause(run: Scenario) -> None:
    for _ in range(3):
        run.enqueue(run.scored_group(0.0, 1.0))
    run.publish(SendFailed, error="connection refused", attempts=1, retry_in=1.0)
    assert names(run) == []
    run.after(61)
    alerts = {alert.name: alert for alert in run.snapshot().run.alerts}
    assert "3 groups in the outbox" in alerts["outbox"].text
    assert "connection refused" in alerts["outbox"].text


def test_an_alert_remembers_since_when_it_holds(run: Scenario) -> None:
    server(run, 0, False, "refused")
    since = run.snapshot().run.alerts[0].since_at
    assert run.after(30).snapshot().run.alerts[0].since_at == since
    server(run, 0, True)
    assert names(run) == []
    server(run, 0, False, "refused")
    assert run.snapshot().run.alerts[0].since_at == since + 30


def test_a_crash_stays_with_its_reason_and_traceback(run: Scenario) -> None:
    run.after(5)
    run.publish(RunEnded, state=RunState.CRASHED, why="KeyError: 'answer'", traceback="Traceback …\nKeyError: 'answer'")
    run.after(3600)
    section = run.snapshot().run
    assert (section.state, section.why_ended) == (RunState.CRASHED, "KeyError: 'answer'")
    assert section.headline == "crashed: KeyError: 'answer'"
    assert section.traceback.startswith("Traceback")
    assert section.ended_at - section.started_at == 5
    assert section.alerts == ()
