"""The directory of a demo: nothing of it is left behind, and where a demo was killed, the next one sees to that.

A demo holds a lock on a file in its directory as long as it lives, however it ends. Without that file nobody can tell
whether a directory is in use; such a one is left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atropos_tui.monitor.discovery import list_runs

PREFIX = "atropos-tui-demo-"
# Holds the name of the host, for locks may not be seen from others that share the directory.
LOCK_FILE = "demo.lock"


@contextmanager
def demo_directory(parent: Path | None = None) -> Iterator[Path]:
    """A new directory for the owner only, under `parent` (default: where temporary files go)."""
    parent = parent or Path(tempfile.gettempdir())
    remove_left_over(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as name:
        directory = Path(name)
        lock = _lock_new(directory)
        try:
            yield directory
        finally:
            os.close(lock)


def remove_left_over(parent: Path) -> None:
    """Remove what this user's killed demos left, as far as that can be proved and done."""
    for directory in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if _is_ours(directory):
                _remove_unless_in_use(directory)


def _lock_new(directory: Path) -> int:
    """A lock that is held until the descriptor is closed, which no child inherits."""
    unlocked = directory / f".{LOCK_FILE}"
    descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, socket.gethostname().encode())
    # Nobody finds it before it is locked.
    unlocked.rename(directory / LOCK_FILE)
    return descriptor


def _is_ours(directory: Path) -> bool:
    about = directory.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()


def _remove_unless_in_use(directory: Path) -> None:
    """Raises OSError where it is in use or cannot be removed."""
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        written_here = os.read(descriptor, 1024) == socket.gethostname().encode()
        # Its workers end soon after a demo was killed, but not at once.
        if not written_here or any(run.alive for run in list_runs(directory)):
            return
        for entry in list(directory.iterdir()):
            if entry.name != LOCK_FILE:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        # Last, for what is left without it stays for ever.
        shutil.rmtree(directory)
    finally:
        os.close(descriptor)
