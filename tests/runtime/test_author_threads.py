"""Functions of an environment that block: in threads, where they hold up nothing and nobody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from atropos_tui.ledger import current_group
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.runtime.author_threads import MOST, AuthorThreads
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


async def test_blocking_rewards_run_beside_each_other_and_the_loop_goes_on(make_env: MakeEnv, api: FakeTrajectoryApi):
    """Eight rewards that can only end together: none could if they ran one after the other, or on the loop."""
    env = make_env(max_num_workers=8)
    together = threading.Barrier(9)
    groups: list[int | None] = []

    def reward() -> list[float]:
        groups.append(current_group.get())
        together.wait(60)
        return [0.0, 1.0, 0.5, 0.25]

    async def rewarded(item: Any) -> Any:
        if item > 8:
            await asyncio.Event().wait()
        return {**good_group(), "scores": await env.in_thread(reward)}, []

    env.script = rewarded
    async with serving(env):
        await until(lambda: len(groups) == 8)
        asked = api.status_calls
        await until(lambda: api.status_calls > asked + 2)
        together.wait(60)
        await until(lambda: len(api.groups) == 8)
    assert sorted(group or 0 for group in groups) == list(range(1, 9))


async def test_what_a_function_raises_fails_its_group(make_env: MakeEnv):
    env = make_env(max_num_workers=1)
    seen = watched(env)

    def reward(answer: str, *, strict: bool) -> float:
        raise ZeroDivisionError(f"{answer} {strict}")

    async def broken(item: Any) -> Any:
        await env.in_thread(reward, "42", strict=True)

    env.script = broken
    async with serving(env):
        await until(lambda: seen.of("group_failed"))
    failed = seen.of("group_failed")[0]
    assert failed.error == "ZeroDivisionError: 42 True"
    assert "in reward" in failed.traceback


async def test_a_function_that_outlasts_its_timeout_frees_the_slot(make_env: MakeEnv):
    env = make_env(max_num_workers=1, worker_timeout=0.2)
    seen = watched(env)
    release = threading.Event()

    async def hanging(item: Any) -> Any:
        await env.in_thread(release.wait)

    env.script = hanging
    async with serving(env):
        await until(lambda: len(seen.of("group_failed")) >= 2)
        assert {event.reason for event in seen.of("group_failed")} == {"timeout"}
        release.set()
    assert env._runtime.stream.counts().by_outcome[Outcome.FAILED] >= 2


async def test_threads_are_bounded_used_again_and_a_call_that_is_given_up_before_its_turn_never_runs():
    threads = AuthorThreads()
    ran: set[int] = set()
    for _ in range(20):
        ran.add(await threads.run(threading.get_ident))
    assert len(ran) == 1

    release, begun = threading.Event(), []
    holding = [asyncio.create_task(threads.run(lambda: (begun.append(1), release.wait()))) for _ in range(MOST)]
    await until(lambda: len(begun) == MOST)
    late = asyncio.create_task(threads.run(begun.append, 2))
    await asyncio.sleep(0)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    release.set()
    await asyncio.gather(*holding)
    assert await threads.run(lambda: 7) == 7
    assert 2 not in begun


def test_a_function_that_never_returns_does_not_keep_the_process_alive():
    code = """
import asyncio, threading
from atropos_tui.runtime.author_threads import AuthorThreads

async def main():
    task = asyncio.create_task(AuthorThreads().run(threading.Event().wait))
    await asyncio.sleep(0.1)
    task.cancel()

asyncio.run(main())
"""
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
    assert time.monotonic() - began < 60
