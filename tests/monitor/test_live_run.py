"""A run in a directory, watched while its worker goes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.client import UnreachableError
from atropos_tui.monitor.discovery import WorkerFile, write_worker_file
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.snapshot import RunSection, RunSnapshot
from atropos_tui.monitor.unix_socket import bind_unix


async def test_a_worker_whose_connections_go_before_its_socket_is_found_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "control.sock"
    listener = bind_unix(path)
    worker = WorkerFile("run-1", os.getpid(), time.time(), str(path), "Env", "env.py")
    write_worker_file(tmp_path, worker)

    class Dying:
        """Its connection breaks, and its socket is gone a moment later."""

        async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
            del hz
            yield RunSnapshot(taken_at=time.time(), run=RunSection(pid=worker.pid, state=RunState.RUNNING))
            asyncio.get_running_loop().call_later(0.05, listener.close)
            raise UnreachableError("the connection was cut")

    async def connected(run: LiveRun, found: object) -> Dying:
        del run, found
        return Dying()

    monkeypatch.setattr(LiveRun, "_connected", connected)
    run = LiveRun(tmp_path, lambda ids: [])
    async with aclosing(run.stream()) as snapshots, asyncio.timeout(60):  # type: ignore[type-var]  # a generator
        assert (await anext(snapshots)).run.state is RunState.RUNNING
        dead = await anext(snapshots)
    await run.close()
    assert (dead.run.state, dead.run.why_ended) == (RunState.CRASHED, "the worker is gone without a word")
