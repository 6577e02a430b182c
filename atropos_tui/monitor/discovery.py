"""Finding runs: one directory a run under a common root, with a file (0600) that says where its worker answers."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from atropos_tui.monitor.decoding import decoded
from atropos_tui.monitor.unix_socket import answers
from atropos_tui.run_root import run_root as run_root

WORKER_FILE = "worker.json"


@dataclass(frozen=True, slots=True)
class WorkerFile:
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


class FoundRun(NamedTuple):
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


def note_run_dir(run_dir: Path, root: Path | None = None) -> None:
    """Let a run that has its directory elsewhere be listed under the root too, by a link there. Raises OSError."""
    root, run_dir = (root or run_root()).resolve(), run_dir.resolve()
    if run_dir.parent == root:
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for link in root.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink(missing_ok=True)
    # A name of its own for each place, and always the same one.
    name = f"{run_dir.name}-{zlib.crc32(str(run_dir).encode()):08x}"
    with contextlib.suppress(FileExistsError):
        (root / name).symlink_to(run_dir, target_is_directory=True)


def write_worker_file(run_dir: Path, worker: WorkerFile) -> None:
    """Replaces the file in one step, so that no reader sees half of it."""
    text = json.dumps(asdict(worker), indent=1) + "\n"
    half_written = run_dir / f".{WORKER_FILE}.{os.getpid()}"
    try:
        _write_new(half_written, text)
    except OSError as error:
        half_written.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not (run_dir / WORKER_FILE).exists():
            raise
        # A full disk has room where the file is already, and how the run ended must not be lost.
        _write_over(run_dir / WORKER_FILE, text)
    else:
        half_written.replace(run_dir / WORKER_FILE)


def _write_new(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _write_over(path: Path, text: str) -> None:
    with path.open("r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()


def find_run(run_dir: Path) -> FoundRun | None:
    """The run in this directory; None when there is none, or none that can be read."""
    worker = _read_worker_file(run_dir)
    while worker is not None:
        if worker.ended_at:
            return FoundRun(run_dir, worker, alive=False)
        alive = answers(worker.socket)
        # A worker that said goodbye, or came, while its socket was tried has written the file anew by now.
        newest = _read_worker_file(run_dir)
        if newest == worker:
            return FoundRun(run_dir, worker, alive)
        worker = newest
    return None


def _read_worker_file(run_dir: Path) -> WorkerFile | None:
    try:
        return decoded(WorkerFile, json.loads((run_dir / WORKER_FILE).read_bytes()))
    except (OSError, ValueError):
        return None


def list_runs(root: Path | None = None) -> Sequence[FoundRun]:
    """All runs under the root, newest first; those that are only linked there, in their own directories."""
    directory = root or run_root()
    if not directory.is_dir():
        return ()
    run_dirs = {path.resolve() if path.is_symlink() else path for path in directory.iterdir()}
    found = filter(None, map(find_run, run_dirs))
    return sorted(found, key=lambda run: run.worker.started_at, reverse=True)
