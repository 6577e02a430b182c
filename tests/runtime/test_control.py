"""The operator's commands: pause, resume, one single group, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.ledger import Outcome
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


class GatedEnv(ScriptedEnv):
    """Rollouts wait at a gate."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.gate = asyncio.Event()
        self.script = self.wait_at_the_gate

    async def wait_at_the_gate(self, item: Any) -> Any:
        await self.gate.wait()
        return good_group(), []


async def test_pause_lets_what_is_in_flight_finish_and_be_sent(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(GatedEnv)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(env.workers) == 3)
        env.control.pause()
        await until(lambda: seen.states()[-1] == "pausing")
        env.gate.set()
        await until(lambda: seen.states()[-1] == "paused")
        assert len(env.collected) == 3
        await until(lambda: len(api.groups) == 3)
        told = seen.of("throttle_changed")[-1]
        assert (told.reason, told.limit) == ("paused", 3)
        env.control.resume()
        await until(lambda: seen.states()[-1] == "running" and len(env.collected) > 3)
    assert not [event for event in seen.of("group_requeued") if event.reason != "shutdown"]


async def test_who_paused_first_stays_named_until_the_run_is_resumed(make_env: MakeEnv):
    env = make_env()
    seen = watched(env)

    def named() -> tuple[str, str] | None:
        return next(((told.state, told.paused_by) for told in seen.of("state_changed")[::-1]), None)

    env.control.pause()
    async with serving(env):
        await until(lambda: named() == ("paused", "the environment's code"))
        env.control.pause("ada@login1 (screen)")
        env.control.pause_now("bob@login2 (command line)")
        env.control.resume()
        await until(lambda: named() == ("running", ""))
        env.control.pause_now("bob@login2 (command line)")
        env.control.pause("ada@login1 (screen)")
        await until(lambda: named() == ("paused", "bob@login2 (command line)"))
        assert {event.paused_by for event in seen.of("state_changed")} == {
            "", "the environment's code", "bob@login2 (command line)",
        }  # fmt: skip


async def test_pause_now_puts_items_back_and_resume_takes_them_first(make_env: MakeEnv):
    env = make_env(GatedEnv)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(env.workers) == 3)
        env.control.pause_now()
        await until(lambda: seen.states()[-1] == "paused")
        assert sorted(env.backlog) == [1, 2, 3]
        assert {event.reason for event in seen.of("group_requeued")} == {"hard_pause"}
        assert env.cleanups == 3
        env.gate.set()
        env.control.resume()
        await until(lambda: len(env.collected) >= 6)
        assert sorted(env.collected[3:6]) == [1, 2, 3]


async def test_a_cancelled_group_has_failed_and_its_item_is_given_up(make_env: MakeEnv):
    env = make_env(GatedEnv, item_retries=5)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(env.workers) == 3)
        env.control.cancel_group(2)
        # Nothing broke: the next item is taken at once, and the cancelled one never again.
        await until(lambda: env.collected == [1, 2, 3, 4])
        (failed,) = seen.of("group_failed")
        assert (failed.group_id, failed.reason, failed.error) == (2, "cancelled", "cancelled by the operator")
        assert env.cleanups == 1
        assert not env._runtime.scheduler._streak.count
    assert sorted(env.backlog) == [1, 3, 4]
    assert env._runtime.stream.counts().balanced


async def test_a_requeued_group_goes_back_and_its_item_is_taken_first(make_env: MakeEnv):
    env = make_env(GatedEnv)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(env.workers) == 3)
        env.control.requeue_group(1)
        await until(lambda: env.collected == [1, 2, 3, 1])
        (requeued,) = seen.of("group_requeued")
        assert (requeued.group_id, requeued.reason) == (1, "operator")
        assert [event.from_backlog for event in seen.of("group_started")] == [False, False, False, True]
    assert env._runtime.stream.counts().balanced


async def test_a_group_that_is_not_being_made_cannot_be_called_off_and_it_is_said_why(make_env: MakeEnv):
    class Handing(ScriptedEnv):
        handing = False
        go_on = asyncio.Event()

        async def handle_send_to_api(self, *arguments: Any, **keywords: Any) -> None:
            await super().handle_send_to_api(*arguments, **keywords)
            self.handing = True
            await self.go_on.wait()

    env = make_env(Handing, max_num_workers=1)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.handing)
        for command in (env.control.cancel_group, env.control.requeue_group):
            with pytest.raises(AtroposError, match="group 1 is finished; only a group that is still being made"):
                command(1)
            with pytest.raises(AtroposError, match="group 77 is not in flight"):
                command(77)
        env.control.pause()
        env.go_on.set()
        await until(lambda: seen.states()[-1] == "paused")
    assert not seen.of("group_failed")
    assert not seen.of("group_requeued")


async def test_a_group_is_called_off_once(make_env: MakeEnv):
    env = make_env(GatedEnv, max_num_workers=1)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.workers)
        env.control.cancel_group(1)
        with pytest.raises(AtroposError, match="group 1 is being called off already"):
            env.control.requeue_group(1)
        await until(lambda: seen.of("group_failed"))
    assert {event.group_id for event in seen.of("group_requeued")} <= {2}


async def test_a_step_runs_exactly_one_group(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    seen = watched(env)
    env.control.pause()
    async with serving(env):
        await until(lambda: seen.states()[-1:] == ["paused"])
        assert not env.collected
        for count in (1, 2):
            env.control.step_group()
            await until(lambda count=count: len(api.groups) == count)
            await until(lambda: seen.states()[-1] == "paused" and not env.workers)
            assert len(env.collected) == count


async def test_a_step_while_running_does_nothing(make_env: MakeEnv):
    env = make_env(GatedEnv)
    async with serving(env):
        await until(lambda: len(env.workers) == 3)
        env.control.step_group()
        env.control.pause()
        env.gate.set()
        await until(lambda: not env.workers)
        assert len(env.collected) == 3


async def test_stop_lets_groups_finish_and_delivers_them(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(GatedEnv)
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: len(env.workers) == 3)
        env.control.stop()
        await until(lambda: seen.states()[-1] == "finishing")
        env.gate.set()
        await until(run.done)
    assert len(api.groups) == 3
    assert api.disconnected == [0]
    assert env._runtime.stream.counts().by_outcome[Outcome.DELIVERED] == 3
    assert seen.of("run_ended")[0].why == "stopped by the operator"


async def test_stop_said_twice_puts_items_back_at_once(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(GatedEnv)
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: len(env.workers) == 3)
        env.control.stop()
        env.control.stop()
        await until(run.done)
    assert sorted(env.backlog) == [1, 2, 3]
    assert [event.reason for event in seen.of("group_requeued")] == ["shutdown"] * 3
    assert env.cleanups == 3
    assert env._runtime.stream.counts().balanced


async def test_a_group_that_is_being_sent_is_not_cancelled_by_a_hard_pause(make_env: MakeEnv, api: FakeTrajectoryApi):
    class Handing(ScriptedEnv):
        handing = False
        go_on = asyncio.Event()

        async def handle_send_to_api(self, *arguments: Any, **keywords: Any) -> None:
            await super().handle_send_to_api(*arguments, **keywords)
            self.handing = True
            await self.go_on.wait()

    env = make_env(Handing, max_num_workers=1)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.handing)
        env.control.pause_now()
        env.go_on.set()
        await until(lambda: seen.states()[-1] == "paused")
    assert len(api.groups) == 1
    assert env.backlog == []
    assert not seen.of("group_requeued")


async def test_code_that_swallows_its_cancellation_loses_its_slot_but_not_the_item(make_env: MakeEnv, monkeypatch: Any):
    monkeypatch.setattr("atropos_tui.runtime.author_calls.CANCEL_GRACE", 0.1)
    env = make_env(max_num_workers=1)
    seen = watched(env)
    release = asyncio.Event()

    async def stubborn(item: Any) -> Any:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return good_group(), []

    env.script = stubborn
    async with serving(env):
        await until(lambda: len(env.workers) == 1)
        env.control.pause_now()
        await until(lambda: seen.states()[-1] == "paused")
        assert env.backlog == [1]
        release.set()
    assert env._runtime.stream.counts().balanced


async def test_a_list_of_groups_is_sent_whole_though_its_worker_is_cancelled(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(max_num_workers=1)

    async def three_groups(item: Any) -> Any:
        return [good_group(), good_group(), good_group()], []

    env.script = three_groups
    seen = watched(env)
    async with serving(env):
        await until(lambda: seen.of("group_enqueued"))
        for worker in list(env.workers):
            worker.cancel()
        env.control.pause()
        await until(lambda: len(api.groups) % 3 == 0 and not env._runtime.delivery._under_way)
    counts = env._runtime.stream.counts()
    assert counts.balanced
    assert counts.by_outcome[Outcome.DELIVERED] == counts.started - counts.by_outcome[Outcome.REQUEUED]
    assert counts.by_outcome[Outcome.DELIVERED] % 3 == 0


async def test_commands_before_the_run_has_begun_count(make_env: MakeEnv):
    env = make_env()
    seen = watched(env)
    env.control.stop("changed my mind")
    await env.env_manager()
    assert seen.of("run_ended")[0].why == "changed my mind"
    assert not env.collected
