"""How a run's worker is started, and started again: in the same directory, with the same flags, from the same place.

`RUN_DIR/start.json` (0600, for flags may hold keys) keeps what the worker was started with.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.decoding import decoded
from atropos_tui.monitor.discovery import find_run

if TYPE_CHECKING:
    from atropos_tui.monitor.supervisor import ChildProcess

START_FILE = "start.json"
READY_SECONDS = 180.0
GONE_SECONDS = 30.0
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker is started with: the environment as it was named, its flags, the worker's own options."""

    environment: str
    flags: tuple[str, ...]
    options: tuple[str, ...]
    working_directory: str

    @classmethod
    def here(cls, environment: str, flags: Sequence[str], options: Sequence[str]) -> Start:
        return cls(environment, tuple(flags), tuple(options), os.getcwd())


class WorkerStarter:
    """Starts the worker of a run directory, any number of times. Methods block.

    Without a `start` it is the one that the directory was started with before.
    """

    def __init__(self, run_dir: Path, start: Start | None = None, *, detached: bool = True) -> None:
        self._run_dir = run_dir.absolute()
        self._start = start
        self._detached = detached
        self.worker: ChildProcess | None = None

    def launch(self) -> ChildProcess:
        """A worker that may not be ready yet. Raises UsageError when nobody knows how to start it."""
        from atropos_tui.monitor.supervisor import launch  # attaching seldom comes to this

        self._start = start = self._start or _read(self._run_dir)
        _keep(self._run_dir, start)
        self.worker = launch(
            [sys.executable, "-m", "atropos_tui.worker"],
            ["--run-dir", str(self._run_dir), *start.options, "--", start.environment, *start.flags],
            log_path=self._run_dir / "worker.log",
            detached=self._detached,
            working_directory=Path(start.working_directory),
        )
        return self.worker

    def exit_status(self) -> int | None:
        """That of the newest worker, negative for a signal; None while it runs, or where it isn't ours."""
        return self.worker.poll() if self.worker is not None else None

    def restart(self) -> None:
        """Start it again once its last worker is gone. Raises UsageError, StartError, or AtroposError if it stays."""
        deadline = time.monotonic() + GONE_SECONDS
        while (run := find_run(self._run_dir)) is not None and run.alive:
            if time.monotonic() >= deadline:
                raise AtroposError("the worker is still there", f"end it first: atropos-tui stop {self._run_dir}")
            time.sleep(LOOK_SECONDS)
        self.launch().wait_ready(READY_SECONDS)


def _read(run_dir: Path) -> Start:
    try:
        return decoded(Start, json.loads((run_dir / START_FILE).read_bytes()))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"it is not known how the run in {run_dir} was started", f"start it with serve --run-dir {run_dir}"
        ) from error


def _keep(run_dir: Path, start: Start) -> None:
    descriptor = os.open(run_dir / START_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(start), indent=1) + "\n")
