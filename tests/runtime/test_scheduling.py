"""Groups are started up to the limit, and every one of them has exactly one outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from atropos_tui.ledger import EventStream, Outcome
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


def stream_of(env: ScriptedEnv) -> EventStream:
    return env._runtime.stream


def outcomes(env: ScriptedEnv) -> dict[str, int]:
    counts = stream_of(env).counts()
    assert counts.balanced, stream_of(env).violations
    return {outcome.value: number for outcome, number in counts.by_outcome.items() if number}


def reasons(env: ScriptedEnv, outcome: Outcome) -> dict[str, int]:
    return dict(stream_of(env).counts().by_reason.get(outcome, {}))


async def serve_items(env: ScriptedEnv, items: list[Any]) -> None:
    """Serve until each of the items has its outcome, then stop."""
    env.items = iter(items)
    async with serving(env) as run:
        await until(lambda: env.cleanups >= len(items), "all items to be done")
        await until(lambda: not env.workers)
        env.control.stop()
        await run


async def test_groups_arrive_at_the_trajectory_api_with_the_number_it_gave(make_env: MakeEnv, api: FakeTrajectoryApi):
    api.first_env_id = 7
    env = make_env()
    await serve_items(env, [1, 2, 3])
    assert outcomes(env) == {"delivered": 3}
    assert [group["env_id"] for group in api.groups] == [7, 7, 7]
    assert api.disconnected == [7]


async def test_no_more_groups_run_than_max_num_workers_allows(make_env: MakeEnv):
    env = make_env(max_num_workers=3)
    seen = watched(env)
    open_gate = asyncio.Event()
    at_once: list[int] = []

    async def wait_at_the_gate(item: Any) -> Any:
        at_once.append(len(env.workers))
        await open_gate.wait()
        return good_group(), []

    env.script = wait_at_the_gate
    async with serving(env):
        await until(lambda: len(env.collected) == 3)
        await until(lambda: seen.of("throttle_changed"))
        told = seen.of("throttle_changed")[-1]
        assert (told.reason, told.limit) == ("max_num_workers", 3)
        assert "3" in told.detail
        open_gate.set()
        await until(lambda: len(env.collected) > 10)
    assert max(at_once) == 3


async def test_an_exception_is_a_failure_with_its_root_cause_traceback_and_item(make_env: MakeEnv):
    env = make_env()
    seen = watched(env)

    async def raise_wrapped(item: Any) -> Any:
        try:
            raise KeyError("inference_logprobs")
        except KeyError as error:
            raise RuntimeError("scoring") from error

    env.script = raise_wrapped
    await serve_items(env, ["what is 2 + 2?"])
    (failed,) = seen.of("group_failed")
    assert failed.reason == "env_error"
    assert failed.error == "KeyError: 'inference_logprobs'"
    assert "raise_wrapped" in failed.traceback
    assert "RuntimeError: scoring" in failed.traceback
    (started,) = seen.of("group_started")
    assert started.item == "what is 2 + 2?"
    assert outcomes(env) == {"failed": 1}


async def test_the_same_failure_is_logged_with_its_traceback_once(make_env: MakeEnv, caplog: pytest.LogCaptureFixture):
    env = make_env(max_num_workers=1)

    async def broken(item: Any) -> Any:
        raise KeyError(item)

    env.script = broken
    await serve_items(env, ["x", "x", "y"])
    told = [
        (record.getMessage(), bool(record.exc_info)) for record in caplog.records if "env error" in record.getMessage()
    ]
    assert [traceback for _, traceback in told] == [True, False, True]


async def test_a_config_that_is_replaced_after_the_constructor_is_the_one_that_counts(make_env: MakeEnv):
    env = make_env()
    env.config = env.config.model_copy(update={"group_size": 2, "ensure_scores_are_not_same": False})

    async def same_scores(item: Any) -> Any:
        return {**good_group(2), "scores": [1.0, 1.0]}, []

    env.script = same_scores
    await serve_items(env, [1])
    assert outcomes(env) == {"delivered": 1}


async def test_none_and_empty_results_are_outcomes_of_their_own(make_env: MakeEnv):
    env = make_env()

    async def by_item(item: Any) -> Any:
        return {"none": None, "list": [], "dict": {}}[item], []

    env.script = by_item
    await serve_items(env, ["none", "list", "dict"])
    assert outcomes(env) == {"rejected": 1, "skipped": 2}
    assert reasons(env, Outcome.REJECTED) == {"collect_trajectories": 1}
    assert reasons(env, Outcome.SKIPPED) == {"empty": 2}


async def test_none_from_postprocessing_is_rejected_under_its_own_name(make_env: MakeEnv):
    class Dropping(ScriptedEnv):
        async def postprocess_histories(self, trajectories: Any) -> Any:
            return None

    env = make_env(Dropping)
    await serve_items(env, [1])
    assert reasons(env, Outcome.REJECTED) == {"postprocess_histories": 1}


async def test_a_leaked_cancelled_error_frees_the_slot_and_is_counted(make_env: MakeEnv):
    env = make_env(max_num_workers=1)
    seen = watched(env)

    async def leak(item: Any) -> Any:
        if item == 1:
            raise asyncio.CancelledError
        return good_group(), []

    env.script = leak
    await serve_items(env, [1, 2])
    assert outcomes(env) == {"failed": 1, "delivered": 1}
    assert "CancelledError" in seen.of("group_failed")[0].error


async def test_a_call_to_exit_ends_the_group_and_not_the_run(make_env: MakeEnv):
    env = make_env()

    async def leave(item: Any) -> Any:
        raise SystemExit(3)

    env.script = leave
    await serve_items(env, [1])
    assert reasons(env, Outcome.FAILED) == {"env_error": 1}


async def test_a_rollout_that_never_ends_is_a_timeout_and_frees_its_slot(make_env: MakeEnv):
    env = make_env(max_num_workers=1, worker_timeout=0.2)

    async def hang(item: Any) -> Any:
        if item == 1:
            # The next one may be slow, as on a busy machine.
            env.config = env.config.model_copy(update={"worker_timeout": 60})
            await asyncio.Event().wait()
        return good_group(), []

    env.script = hang
    await serve_items(env, [1, 2])
    assert reasons(env, Outcome.FAILED) == {"timeout": 1}
    assert outcomes(env)["delivered"] == 1


async def test_an_override_of_sending_that_hangs_is_a_timeout_too(make_env: MakeEnv):
    class Hanging(ScriptedEnv):
        async def handle_send_to_api(self, *arguments: Any, **keywords: Any) -> None:
            await asyncio.Event().wait()

    env = make_env(Hanging, worker_timeout=0.2)
    await serve_items(env, [1])
    assert reasons(env, Outcome.FAILED) == {"timeout": 1}


async def test_a_rollout_that_hangs_after_its_group_was_sent_changes_no_outcome(make_env: MakeEnv):
    class Lingering(ScriptedEnv):
        sent = 0

        async def handle_send_to_api(self, *arguments: Any, **keywords: Any) -> None:
            await super().handle_send_to_api(*arguments, **keywords)
            self.sent += 1
            await asyncio.Event().wait()

    env = make_env(Lingering, worker_timeout=0.2)
    async with serving(env):
        # On a busy machine the time may be over before a group was sent.
        await until(lambda: env.sent > 3)
    assert outcomes(env)["delivered"] >= env.sent


async def test_timeouts_and_inference_errors_are_tried_again_as_often_as_the_config_says(make_env: MakeEnv):
    from atropos_tui.errors import InferenceError

    env = make_env(max_num_workers=1, item_retries=1)

    async def fail_twice(item: Any) -> Any:
        if env.collected.count(item) <= 2:
            raise InferenceError("server gone", kind="connect")
        return good_group(), []

    env.script = fail_twice
    env.items = iter([1])
    async with serving(env):
        await until(lambda: env.cleanups == 2 and not env.workers)
    assert env.collected == [1, 1]
    assert reasons(env, Outcome.FAILED) == {"inference_error": 2}


async def test_cleanup_follows_every_attempt_whatever_happened(make_env: MakeEnv):
    env = make_env()

    async def by_item(item: Any) -> Any:
        if item == "raise":
            raise ValueError
        return {"none": None, "good": good_group()}[item], []

    env.script = by_item
    await serve_items(env, ["raise", "none", "good"])
    assert env.cleanups == 3


async def test_a_cleanup_that_raises_changes_no_outcome(make_env: MakeEnv):
    class Untidy(ScriptedEnv):
        async def cleanup(self) -> None:
            await super().cleanup()
            raise OSError("sandbox is gone")

    env = make_env(Untidy)
    await serve_items(env, [1, 2])
    assert outcomes(env) == {"delivered": 2}


async def test_one_bad_group_of_a_list_takes_no_other_along(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    seen = watched(env)

    async def four_groups(item: Any) -> Any:
        bad = {**good_group(), "scores": [float("nan"), 0.0, 1.0, 2.0]}
        return [good_group(), bad, None, {**good_group(), "group_overrides": None}], []

    env.script = four_groups
    await serve_items(env, [1])
    assert outcomes(env) == {"delivered": 2, "skipped": 1, "rejected": 1}
    assert reasons(env, Outcome.SKIPPED) == {"malformed": 1}
    first, *others = seen.of("group_started")
    assert first.split_from is None
    assert {other.split_from for other in others} == {first.group_id}
    assert len(api.groups) == 2


async def test_items_of_the_backlog_come_before_new_ones(make_env: MakeEnv):
    env = make_env(max_num_workers=1)
    seen = watched(env)

    async def further_items(item: Any) -> Any:
        return good_group(), ["a", "b"] if item == 1 else []

    env.script = further_items
    env.items = iter([1, 2])
    async with serving(env):
        await until(lambda: env.cleanups == 4)
    assert env.collected == [1, "b", "a", 2]
    assert [event.from_backlog for event in seen.of("group_started")] == [False, True, True, False]


async def test_items_that_run_out_are_told_and_asked_for_again(make_env: MakeEnv):
    env = make_env()
    seen = watched(env)
    asked = 0

    class Endless:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            nonlocal asked
            asked += 1
            return asked if asked > 3 else None

    env.items = iter(Endless())
    async with serving(env):
        await until(lambda: len(env.collected) > 3)
    assert "no_items" in [event.reason for event in seen.of("throttle_changed")]


async def test_get_next_item_that_raises_is_asked_again_later_and_said_so(make_env: MakeEnv):
    class Stumbling(ScriptedEnv):
        stumbles = 0

        async def get_next_item(self) -> Any:
            if self.stumbles < 3:
                self.stumbles += 1
                raise ConnectionError("dataset is away")
            return await super().get_next_item()

    env = make_env(Stumbling)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(env.collected) > 2)
    told = [event for event in seen.of("throttle_changed") if event.reason == "backing_off"]
    assert told
    assert "ConnectionError: dataset is away" in told[0].detail


async def test_an_environment_that_always_raises_eats_few_items(make_env: MakeEnv):
    env = make_env(max_num_workers=8)
    seen = watched(env)

    async def broken(item: Any) -> Any:
        raise KeyError("x")

    env.script = broken

    def told() -> list[str]:
        return [event.detail for event in seen.of("throttle_changed") if event.reason == "backing_off"]

    async with serving(env):
        await until(lambda: any(detail.startswith("6 failures in a row, KeyError: 'x'") for detail in told()))
        # Eight at once before the first rest, then one after each rest.
        assert len(env.collected) <= 8 + 6


async def test_a_full_trainer_queue_stops_launching_and_cancels_nothing(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(max_num_workers=4, max_batches_offpolicy=1)
    api.batch_size = 16
    seen = watched(env)
    gate = asyncio.Event()

    async def wait_at_the_gate(item: Any) -> Any:
        await gate.wait()
        return good_group(), []

    env.script = wait_at_the_gate
    async with serving(env):
        await until(lambda: len(env.workers) == 4)
        api.queue_size = 4
        await until(lambda: any(event.reason == "off_policy_limit" for event in seen.of("throttle_changed")))
        assert len(env.workers) == 4
        gate.set()
        await until(lambda: len(api.groups) == 4)
        assert len(env.collected) == 4
        api.queue_size = 0
        await until(lambda: len(env.collected) > 4)
    assert {event.reason for event in seen.of("group_requeued")} <= {"shutdown"}


async def test_groups_on_the_way_count_against_the_off_policy_limit(make_env: MakeEnv, api: FakeTrajectoryApi):
    """The trainer never takes anything; no more is made than may wait, however old the last status is."""
    env = make_env(max_num_workers=8, max_batches_offpolicy=1)
    api.batch_size = 16
    api.queue_size = None
    async with serving(env):
        await until(lambda: len(api.groups) == 4)
        calls = api.status_calls
        await until(lambda: api.status_calls > calls + 5)
        assert len(api.groups) == 4


async def test_an_override_of_add_train_workers_may_start_nothing(make_env: MakeEnv, api: FakeTrajectoryApi):
    class Idle(ScriptedEnv):
        asked = 0

        async def add_train_workers(self) -> None:
            self.asked += 1

    env = make_env(Idle)
    async with serving(env):
        await until(lambda: env.asked >= 3)
        before, polls = env.asked, api.status_calls
        await until(lambda: api.status_calls >= polls + 2)
        assert env.asked - before < 20
    assert outcomes(env) == {}


class Loader(ScriptedEnv):
    """Sends three groups at each new step of the trainer, as loaders of finished data do, and makes none."""

    async def add_train_workers(self) -> None:
        return None

    async def env_step_checks(self) -> None:
        if self.curr_step != self.status_dict["current_step"]:
            await asyncio.gather(*(self.handle_send_to_api(good_group(), None) for _ in range(3)))
        await super().env_step_checks()


async def test_groups_that_an_environment_sends_by_itself_are_in_the_ledger(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(Loader)
    async with serving(env):
        await until(lambda: env.status_dict)
        api.step = 1
        await until(lambda: len(api.groups) == 3)
    assert outcomes(env) == {"delivered": 3}


async def test_a_group_is_as_old_as_the_newest_step_however_far_the_trainer_jumped(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    env = make_env(Loader, max_batches_offpolicy=2)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.status_dict)
        api.step = 40
        await until(lambda: outcomes(env))
        await until(lambda: sum(outcomes(env).values()) == 3)
    assert outcomes(env) == {"delivered": 3}
    assert [event.step for event in seen.of("group_started")] == [40] * 3


async def test_a_slow_observer_delays_no_group(make_env: MakeEnv, api: FakeTrajectoryApi):
    class SlowTable(ScriptedEnv):
        shown = 0

        async def add_rollouts_for_wandb(self, scored_data: Any, item: Any = None) -> None:
            self.shown += 1
            if self.shown == 1:
                raise IndexError("more rollouts asked for than there are")
            await asyncio.Event().wait()

    env = make_env(SlowTable, max_num_workers=3)
    env.items = iter([1, 2, 3])
    async with serving(env):
        await until(lambda: len(api.groups) == 3)


async def test_the_run_ends_when_the_trainer_has_its_steps(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(total_steps=5)
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: env.collected)
        api.step = 6
        await asyncio.wait_for(run, 60)
    (ended,) = seen.of("run_ended")
    assert ended.state == "finished"
    assert "5 steps" in ended.why
    assert seen.states()[-2:] == ["finishing", "finished"]
    assert api.disconnected == [0]


async def test_what_others_have_queued_does_not_count_as_steps_of_this_run(make_env: MakeEnv, api: FakeTrajectoryApi):
    """An API that lives on may hold more groups of an earlier run, or of another environment, than all steps need."""
    api.queue_size, api.more_status = 1000, {"self_queue_size": 0}
    env = make_env(total_steps=5, max_batches_offpolicy=0)
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: len(api.groups) >= 2)
        asked = api.status_calls
        await until(lambda: api.status_calls > asked + 2)
        assert not run.done()
        api.step = 5
        await asyncio.wait_for(run, 20)
    (ended,) = seen.of("run_ended")
    assert (ended.state, ended.why) == ("finished", "the trainer has its 5 steps")


async def test_what_an_earlier_run_of_the_same_number_has_queued_does_not_count_either(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    api.queue_size = 1000
    env = make_env(total_steps=5, max_batches_offpolicy=0)
    env.items = iter([1, 2])
    async with serving(env) as run:
        await until(lambda: len(api.groups) == 2)
        asked = api.status_calls
        await until(lambda: api.status_calls > asked + 2)
        assert not run.done()


async def test_a_run_ends_when_what_it_has_queued_makes_up_the_trainers_steps(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    api.queue_size, api.batch_size = None, 8
    env = make_env(total_steps=2, max_batches_offpolicy=0)
    seen = watched(env)
    async with serving(env) as run:
        await asyncio.wait_for(run, 30)
    (ended,) = seen.of("run_ended")
    assert ended.why == "the trainer has its 2 steps"
    assert len(api.groups) * env.config.group_size > 2 * env.config.batch_size


async def test_a_run_that_begins_after_its_last_step_says_so(make_env: MakeEnv, api: FakeTrajectoryApi):
    api.step = api.starting_step = 50
    env = make_env(total_steps=20)
    seen = watched(env)
    async with serving(env) as run:
        await asyncio.wait_for(run, 20)
    (ended,) = seen.of("run_ended")
    assert "is at step 50 already, total_steps is 20" in ended.why
    assert "/reset_data" in ended.why
    assert (api.groups, env.collected) == ([], [])
    assert api.disconnected == [0]


async def test_total_steps_come_from_the_trainer_when_the_config_has_none(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(total_steps=-1)
    api.num_steps = 42
    async with serving(env):
        await until(lambda: env.collected)
    assert env.config.total_steps == 42
