"""Finding runs: one directory a run under a common root, with a file (0600) that says where its worker answers."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from atropos_tui.monitor.unix_socket import answers

WORKER_FILE = "worker.json"


class WorkerFile(BaseModel):
    """Who runs here. `url` is set where the worker answers over TCP too.

    `ended_at`, `end_state` and `why` are filled in by a worker that ended in order.
    """

    run_id: str
    pid: int
    started_at: float
    socket: str
    environment: str
    file: str
    host: str = ""
    url: str = ""
    ended_at: float = 0.0
    end_state: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run directory. `alive`: its worker answers; else it ended, died, or runs on another host."""

    run_dir: Path
    worker: WorkerFile
    alive: bool

    @property
    def elsewhere(self) -> bool:
        """The directory is shared and the worker was started on another host: it cannot be asked from here."""
        return self.worker.host not in ("", socket.gethostname())

    @property
    def stale(self) -> bool:
        """The worker is gone and did not say goodbye."""
        return not (self.alive or self.elsewhere or self.worker.ended_at)


def run_root() -> Path:
    """`$ATROPOS_TUI_RUNS`, or `~/.local/state/atropos-tui/runs` (`$XDG_STATE_HOME` is honoured)."""
    if given := os.environ.get("ATROPOS_TUI_RUNS"):
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "atropos-tui" / "runs"


def new_run_dir(name: str, root: Path | None = None, now: float | None = None) -> Path:
    """Make a directory (0700) for a new run, named after the environment and the local time."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    root = root or run_root()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    attempt = 1
    while True:
        path = root / (f"{stem}-{stamp}" if attempt == 1 else f"{stem}-{stamp}-{attempt}")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            attempt += 1
        else:
            return path


def write_worker_file(run_dir: Path, worker: WorkerFile) -> None:
    """Replaces the file in one step, so that no reader sees half of it."""
    half_written = run_dir / f".{WORKER_FILE}.{os.getpid()}"
    descriptor = os.open(half_written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(worker.model_dump_json(indent=1) + "\n")
    half_written.replace(run_dir / WORKER_FILE)


def find_run(run_dir: Path) -> FoundRun | None:
    """The run in this directory; None when there is none, or none that can be read."""
    try:
        worker = WorkerFile.model_validate_json((run_dir / WORKER_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return FoundRun(run_dir, worker, alive=not worker.ended_at and answers(worker.socket))


def list_runs(root: Path | None = None) -> Sequence[FoundRun]:
    """All runs under the root, newest first."""
    directory = root or run_root()
    if not directory.is_dir():
        return ()
    found = filter(None, map(find_run, directory.iterdir()))
    return sorted(found, key=lambda run: run.worker.started_at, reverse=True)
