"""Servers that an environment makes itself, such as a judge, are seen in its run and end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atropos_tui.inference import APIServerConfig, ServerManager
from tests.inference.fake_inference_server import FakeServer
from tests.inference.managing import HELLO, config_for, health_threads, stopped
from tests.runtime.serving_parts import (
    FakeTrajectoryApi,
    RecordedEvents,
    ScriptedEnv,
    good_group,
    serving,
    until,
    watched,
)

MakeEnv = Callable[..., ScriptedEnv]


class JudgedEnv(ScriptedEnv):
    """Two replies of the policy and one verdict of the judge a group."""

    judge: ServerManager

    async def collect_trajectories(self, item: Any) -> Any:
        await self.server.chat_completion(messages=HELLO, n=2)
        await self.judge.chat_completion(messages=HELLO)
        return good_group(self.config.group_size), []


def judged_env(make_env: MakeEnv, policy: FakeServer, judge: APIServerConfig, **fields: Any) -> JudgedEnv:
    env = make_env(JudgedEnv, **fields)
    assert isinstance(env, JudgedEnv)
    env.server = ServerManager([config_for(policy)])
    env.judge = ServerManager([judge])
    return env


def servers(seen: RecordedEvents) -> dict[int, tuple[str, bool | None, bool]]:
    """The newest known of each server: its address, whether it is healthy, whether the environment made it."""
    return {event.server: (event.url, event.healthy, event.auxiliary) for event in seen.of("server_health")}


async def test_calls_to_a_judge_are_calls_of_their_group(make_env: MakeEnv, api: FakeTrajectoryApi):
    async with FakeServer("openai") as policy, FakeServer("openai") as judging:
        env = judged_env(make_env, policy, config_for(judging))
        seen = watched(env)
        env.items = iter([1, 2, 3])
        async with serving(env):
            await until(lambda: len(api.groups) == 3)
    assert servers(seen) == {0: (policy.url, True, False), 1: (judging.url, True, True)}
    calls = seen.of("call_finished")
    for group in (1, 2, 3):
        mine = [(call.server, call.n, call.auxiliary) for call in calls if call.group_id == group]
        assert mine == [(0, 2, False), (1, 1, True)]
    assert len({call.call_id for call in calls}) == len(calls) == 6


async def test_a_judge_that_refuses_is_shown_and_holds_back_nobodys_start(make_env: MakeEnv, api: FakeTrajectoryApi):
    gone = await stopped()
    async with FakeServer("openai") as policy:
        env = judged_env(make_env, policy, config_for(gone, timeout=1), max_num_workers=1)
        seen = watched(env)
        env.items = iter([1])
        async with serving(env):
            await until(lambda: servers(seen).get(1) == (gone.url, False, True))
            assert servers(seen)[0] == (policy.url, True, False)
            assert env.server.unhealthy_detail == ""
            assert health_threads() != []
            await until(lambda: seen.of("group_failed"))
            assert gone.root in seen.of("group_failed")[0].error
    assert health_threads() == [], "the run has ended, and with it the probes"


async def test_an_evaluation_that_asks_a_judge_shows_it(make_env: MakeEnv, api: FakeTrajectoryApi):
    async with FakeServer("openai") as policy, FakeServer("openai") as judging:
        env = judged_env(make_env, policy, config_for(judging))
        seen = watched(env)

        async def judged() -> dict[str, float]:
            await env.judge.chat_completion(messages=HELLO, split="eval")
            return {"eval/accuracy": 1.0}

        env.evaluation = judged
        await env.evaluate_manager()
    assert servers(seen)[1] == (judging.url, True, True)
    (call,) = seen.of("call_finished")
    assert (call.server, call.group_id, call.split, call.auxiliary) == (1, None, "eval", True)


async def test_a_blocking_function_may_ask_the_judge_from_its_thread(make_env: MakeEnv, api: FakeTrajectoryApi):
    class Blocking(JudgedEnv):
        async def collect_trajectories(self, item: Any) -> Any:
            await self.in_thread(lambda: asyncio.run(self.judge.chat_completion(messages=HELLO)))
            return good_group(self.config.group_size), []

    async with FakeServer("openai") as judging:
        env = make_env(Blocking)
        assert isinstance(env, Blocking)
        env.judge = ServerManager([config_for(judging)])
        seen = watched(env)
        env.items = iter([1])
        async with serving(env):
            await until(lambda: len(api.groups) == 1)
    assert [(call.group_id, call.auxiliary) for call in seen.of("call_finished")] == [(1, True)]
