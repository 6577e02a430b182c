"""The four processes of the demo: policy server, trajectory API, trainer and environment worker."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.supervisor import ChildProcess, launch
from atropos_tui.shipped import shipped_directory

READY_SECONDS = 120.0
RECORD_LIMIT = "1G"  # nothing of a demo is kept, but it may go on for days


class PocketLoop:
    """Policy server, trajectory API, trainer and worker, each on a free port of loopback."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._seed = seed
        self._children: dict[str, ChildProcess] = {}

    async def start(self) -> None:
        """Start all four; returns when the worker answers. Raises UsageError or StartError."""
        self._launch("policy", "atropos_tui.pocket.server", "--port", "0", "--seed", str(self._seed))
        self._launch("api", "atropos_tui.trajectory_api", "--port", "0", "--no-journal")
        policy, api = await asyncio.gather(self._url("policy"), self._url("api"))
        self._launch(
            "trainer", "atropos_tui.pocket.trainer", "--api", api, "--inference", policy, "--seed", str(self._seed),
            "--status-file", str(self._trainer_status_file), "--weights-dir", str(self._directory),
        )  # fmt: skip
        self._launch(
            "worker", "atropos_tui.worker", "--run-dir", str(self._directory), "--run-id", "demo",
            "--record-limit", RECORD_LIMIT, "--",
            str(shipped_directory("envs") / "reverse.py"),
            "--env.rollout_server_url", api, "--openai.base_url", f"{policy}/v1",
        )  # fmt: skip
        await asyncio.to_thread(self._children["worker"].wait_ready, READY_SECONDS)

    async def end(self) -> None:
        """End every process, the worker first so that it can say goodbye to the others."""
        worker = self._children.pop("worker", None)
        if worker is not None:
            await asyncio.to_thread(worker.terminate)
        await asyncio.gather(*(asyncio.to_thread(child.terminate) for child in self._children.values()))

    @property
    def socket(self) -> str:
        """Where the worker's control API answers."""
        return str(self._children["worker"].ready["socket"])

    def trainer_status(self) -> dict[str, Any]:
        """What the trainer says of itself; zeros before it has said anything."""
        status: dict[str, Any] = {"groups_received": 0, "step": 0}
        if self._trainer_status_file.exists():
            status |= orjson.loads(self._trainer_status_file.read_bytes())
        return status

    def check_alive(self) -> None:
        """Raises AtroposError when one of the processes is gone."""
        for name, child in self._children.items():
            status = child.poll()
            if status is not None:
                last_words = [line.strip() for line in child.last_lines() if line.strip()] or ["it left no word"]
                raise AtroposError(f"the {name} process ended with status {status}: {last_words[-1]}")

    @property
    def _trainer_status_file(self) -> Path:
        return self._directory / "trainer.json"

    def _launch(self, name: str, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module]
        self._children[name] = launch(command, arguments, log_path=self._directory / f"{name}.log")

    async def _url(self, name: str) -> str:
        ready = await asyncio.to_thread(self._children[name].wait_ready, READY_SECONDS)
        return str(ready["url"])


@asynccontextmanager
async def pocket_loop(seed: int) -> AsyncIterator[PocketLoop]:
    """A running loop in a directory of its own; nothing of it is left behind."""
    with tempfile.TemporaryDirectory(prefix="atropos-tui-demo-") as directory:
        loop = PocketLoop(Path(directory), seed)
        try:
            await loop.start()
            yield loop
        finally:
            await asyncio.shield(loop.end())
