"""Known faults of the runtime that no test of a single part shows."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


async def test_a_trainer_without_a_length_limit_gets_long_groups_and_no_warning_for_each(
    make_env: MakeEnv, api: FakeTrajectoryApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.max_token_len = -1
    env = make_env()

    async def long_group(item: Any) -> Any:
        return good_group(4, length=5000), []

    env.script = long_group
    async with serving(env):
        await until(lambda: len(api.groups) >= 10, patience=60)
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) <= 1


async def test_a_wall_clock_that_jumps_times_no_rollout_out(
    make_env: MakeEnv, api: FakeTrajectoryApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make_env(worker_timeout=600)
    seen = watched(env)
    released = asyncio.Event()

    async def wait_for_release(item: Any) -> Any:
        await released.wait()
        return good_group(4), []

    env.script = wait_for_release
    async with serving(env):
        await until(lambda: env.workers)
        unix_seconds = time.time
        monkeypatch.setattr(time, "time", lambda: unix_seconds() + 1_000_000)
        asked = api.status_calls
        await until(lambda: api.status_calls > asked + 3)
        released.set()
        await until(lambda: api.groups)
    assert seen.of("group_failed") == []


class Noting:
    """A value that notes which thread turns it into plain numbers."""

    def __init__(self, value: list[Any], threads: set[int]) -> None:
        self._value = value
        self._threads = threads

    def tolist(self) -> list[Any]:
        self._threads.add(threading.get_ident())
        return self._value


async def test_a_group_is_checked_and_encoded_off_the_event_loop(make_env: MakeEnv, api: FakeTrajectoryApi) -> None:
    """In atroposlib 0.4.0 the JSON and gzip of 16 × 32,768 tokens hold the loop for 3.7 s."""
    env = make_env()
    checked_in: set[int] = set()
    encoded_in: set[int] = set()

    async def noting_group(item: Any) -> Any:
        group = good_group(4, length=4)
        group["tokens"] = Noting(group["tokens"], checked_in)
        return {**group, "generation_params": {"seeds": Noting([1, 2], encoded_in)}}, []

    env.script = noting_group
    async with serving(env):
        await until(lambda: len(api.groups) >= 5, patience=60)
    assert api.groups[0]["generation_params"] == {"seeds": [1, 2]}
    assert checked_in
    assert encoded_in
    assert threading.get_ident() not in checked_in | encoded_in
