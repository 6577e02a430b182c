"""A scoring function that holds its event loop: what is finished is delivered all the same, and the worker answers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.supervisor import ChildProcess, start_process
from benchmarks.survival import make_tokenizer

PATIENCE = 60.0
BLOCKS_AT_LEAST = 3.0
GROUPS = 20

# Blocks with CPU, not with a sleep, from the moment that the file `hold` is there until there is `release`.
ENVIRONMENT = """\
import asyncio, pathlib, time
from atropos_tui import BaseEnv

HOLD, RELEASE = pathlib.Path({hold!r}), pathlib.Path({release!r})


class Blocking(BaseEnv):
    async def get_next_item(self):
        return "item"

    async def collect_trajectories(self, item):
        await asyncio.sleep(0.01)
        return {{"tokens": [[1, 2]] * 4, "masks": [[-100, 2]] * 4, "scores": self.score()}}, []

    def score(self):
        bound = time.monotonic() + 120
        while HOLD.exists() and not RELEASE.exists() and time.monotonic() < bound:
            sum(number * number for number in range(10_000))
        return [0.0, 1.0, 0.5, 0.25]

    async def evaluate(self, *args, **kwargs):
        pass
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ChildProcess]:
    """With a trainer that takes nothing."""
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0"]
    with start_process(command, log_path=tmp_path / "api.log") as api:
        registration = {
            "wandb_group": "", "wandb_project": "", "batch_size": 8, "max_token_len": 64, "checkpoint_dir": "",
            "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 100,
        }  # fmt: skip
        httpx.post(f"{api.ready['url']}/register", json=registration, timeout=PATIENCE).raise_for_status()
        httpx.get(f"{api.ready['url']}/batch", timeout=PATIENCE).raise_for_status()
        yield api
        os.kill(api.pid, signal.SIGCONT)


@pytest.fixture
def worker(tmp_path: Path, api: ChildProcess) -> Iterator[ChildProcess]:
    make_tokenizer(tmp_path / "tokenizer")
    environment = tmp_path / "blocking.py"
    environment.write_text(ENVIRONMENT.format(hold=str(tmp_path / "hold"), release=str(tmp_path / "release")))
    arguments = [
        "--", str(environment), "--env.rollout_server_url", api.ready["url"], "--env.use_wandb", "false",
        "--env.tokenizer_name", str(tmp_path / "tokenizer"), "--env.max_batches_offpolicy", "0",
    ]  # fmt: skip
    command = [sys.executable, "-m", "atropos_tui.worker", "--run-dir", str(tmp_path / "run")]
    with start_process(command, arguments, log_path=tmp_path / "worker.log") as worker:
        yield worker
        (tmp_path / "release").touch()


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.02)


async def test_a_scoring_function_that_blocks_its_loop_holds_up_neither_sends_nor_the_control_api(
    tmp_path: Path, api: ChildProcess, worker: ChildProcess
) -> None:
    async with (
        RunClient(worker.ready["socket"]) as client,
        httpx.AsyncClient(base_url=api.ready["url"], timeout=PATIENCE) as http,
    ):

        async def received() -> int:
            return int((await http.get("/status")).json()["queue_size"])

        async def groups_arrive() -> bool:
            return await received() > 0

        async def groups_wait() -> bool:
            return (await client.snapshot()).sends.outbox >= GROUPS

        async def loop_is_held() -> bool:
            return (await client.snapshot()).run.loop_lag >= BLOCKS_AT_LEAST

        async def all_are_delivered() -> bool:
            return (await client.snapshot()).sends.outbox == 0

        async def run_is_paused() -> bool:
            return (await client.snapshot()).run.state is RunState.PAUSED

        await until(groups_arrive, "the first groups")
        os.kill(api.pid, signal.SIGSTOP)
        await until(groups_wait, "groups in the outbox while the trajectory API is frozen")
        (tmp_path / "hold").touch()
        await until(loop_is_held, "the loop to be held")
        os.kill(api.pid, signal.SIGCONT)

        await until(all_are_delivered, "the delivery of what was finished")
        assert await received() >= GROUPS
        assert (await client.groups(limit=5)).rows
        await client.pause()
        held = (await client.snapshot()).run
        assert held.loop_lag >= BLOCKS_AT_LEAST
        assert "blocking.py" in held.loop_held_by

        (tmp_path / "release").touch()
        await until(run_is_paused, "the pause to take effect once the loop is free")
