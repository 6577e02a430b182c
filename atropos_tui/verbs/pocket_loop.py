"""The processes of the demo: policy server, trajectory API, trainer, and a worker for each environment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.supervisor import ChildProcess, launch
from atropos_tui.shipped import shipped_directory
from atropos_tui.verbs.demo_directory import demo_directory

READY_SECONDS = 120.0
RECORD_LIMIT = "1G"  # nothing of a demo is kept, but it may go on for days

# The shipped tasks, and the letter at the end of the prompt by which one policy tells several of them apart.
_CUES = {"reverse": "r", "sort": "s", "shift": "t"}


@dataclass(frozen=True, slots=True)
class PocketTask:
    """An environment that the pocket policy is to learn."""

    name: str
    file: Path

    @property
    def cue(self) -> str:
        """Empty for an environment of the user's, whose prompts are its own."""
        return _CUES[self.name] if self.file.parent == shipped_directory("envs") else ""


def pocket_tasks(named: str) -> tuple[PocketTask, ...]:
    """The tasks of a list with commas: names of shipped ones, or environment files. Raises UsageError."""
    tasks: dict[str, PocketTask] = {}
    for text in map(str.strip, named.split(",")):
        task = _pocket_task(text)
        if task.name in tasks:
            raise UsageError(f"--envs names {task.name} twice", "name each task once")
        tasks[task.name] = task
    return tuple(tasks.values())


def _pocket_task(text: str) -> PocketTask:
    if text in _CUES:
        return PocketTask(text, shipped_directory("envs") / f"{text}.py")
    file = Path(text)
    if file.suffix != ".py":
        raise UsageError(f"--envs: there is no pocket task {text!r}", f"choose from {', '.join(_CUES)}, or name a file")
    if not file.is_file():
        raise UsageError(f"--envs: there is no file {text}", "`atropos-tui new NAME` writes an environment")
    return PocketTask(file.stem, file.resolve())


class PocketLoop:
    """Policy server, trajectory API and trainer, each on a free port of loopback, and a worker for each task."""

    def __init__(self, directory: Path, seed: int, tasks: Sequence[PocketTask]) -> None:
        self.directory = directory
        self._tasks = tuple(tasks)
        self._seed = seed
        self._children: dict[str, ChildProcess] = {}

    async def start(self) -> None:
        """Start all; returns when the workers answer. Raises UsageError or StartError."""
        self._launch("policy", "atropos_tui.pocket.server", "--port", "0", "--seed", str(self._seed))
        self._launch("api", "atropos_tui.trajectory_api", "--port", "0", "--no-journal")
        policy, api = await asyncio.gather(self._url("policy"), self._url("api"))
        self._launch(
            "trainer", "atropos_tui.pocket.trainer", "--api", api, "--inference", policy, "--seed", str(self._seed),
            "--status-file", str(self._trainer_status_file), "--weights-dir", str(self.directory),
        )  # fmt: skip
        for task in self._tasks:
            self._launch_worker(task, api, policy)
        await asyncio.gather(*(self._ready(task.name) for task in self._tasks))

    def _launch_worker(self, task: PocketTask, api: str, policy: str) -> None:
        several = len(self._tasks) > 1
        instruction = ["--env.instruction", "{text}" + task.cue] if several and task.cue else []
        self._launch(
            task.name, "atropos_tui.worker", "--run-dir", str(self.run_dir_of(task.name)),
            "--run-id", f"demo-{task.name}" if several else "demo", "--record-limit", RECORD_LIMIT, "--",
            str(task.file), "--env.rollout_server_url", api, "--openai.base_url", f"{policy}/v1", *instruction,
        )  # fmt: skip

    async def end(self) -> None:
        """End every process, the workers first so that they can say goodbye to the others."""
        workers = [self._children.pop(task.name) for task in self._tasks if task.name in self._children]
        for children in (workers, self._children.values()):
            await asyncio.gather(*(asyncio.to_thread(child.terminate) for child in children))

    @property
    def socket(self) -> str:
        """Where the control API of the first worker answers."""
        return self.socket_of(self._tasks[0].name)

    def socket_of(self, task: str) -> str:
        return str(self._children[task].ready["socket"])

    def run_dir_of(self, task: str) -> Path:
        return self.directory / task

    def worker_of(self, task: str) -> ChildProcess:
        """The newest worker of a task."""
        return self._children[task]

    def restart(self, task: PocketTask) -> None:
        """Another worker goes on with a task whose worker is gone. Blocks; raises StartError when it does not come."""
        self._launch_worker(task, str(self._children["api"].ready["url"]), str(self._children["policy"].ready["url"]))
        self._children[task.name].wait_ready(READY_SECONDS)

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
        return self.directory / "trainer.json"

    def _launch(self, name: str, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", module]
        self._children[name] = launch(command, arguments, log_path=self.directory / f"{name}.log")

    async def _ready(self, name: str) -> Mapping[str, Any]:
        return await asyncio.to_thread(self._children[name].wait_ready, READY_SECONDS)

    async def _url(self, name: str) -> str:
        return str((await self._ready(name))["url"])


@asynccontextmanager
async def pocket_loop(seed: int, tasks: Sequence[PocketTask] = ()) -> AsyncIterator[PocketLoop]:
    """A running loop, without tasks that of `reverse`, in a directory of its own; nothing of it is left behind."""
    with demo_directory() as directory:
        loop = PocketLoop(directory, seed, tasks or pocket_tasks("reverse"))
        try:
            await loop.start()
            yield loop
        finally:
            await asyncio.shield(loop.end())
