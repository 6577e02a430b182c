"""What a killed demo left is removed by the next one; what may be in use is not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from atropos_tui.monitor.discovery import WorkerFile, write_worker_file
from atropos_tui.monitor.unix_socket import bind_unix, remove_socket, socket_path_for
from atropos_tui.verbs.demo_directory import LOCK_FILE, PREFIX, demo_directory, remove_left_over

HELD = """\
import sys
from pathlib import Path
from atropos_tui.verbs.demo_directory import demo_directory
with demo_directory(Path(sys.argv[1])) as directory:
    (directory / "reverse").mkdir()
    (directory / "reverse" / "worker.log").write_text("a line")
    print(directory, flush=True)
    sys.stdin.read()
"""


def killed(parent: Path) -> Path:
    """The directory that a demo left that was killed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HELD, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    directory = Path(holder.stdout.readline().strip())
    remove_left_over(parent)
    assert directory.is_dir(), "it is in use"
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=30)
    assert directory.is_dir()
    return directory


def test_a_demo_leaves_nothing(tmp_path: Path) -> None:
    with demo_directory(tmp_path) as directory:
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / "policy.log").write_text("a line")
    assert list(tmp_path.iterdir()) == []


def test_the_next_demo_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left = killed(tmp_path)
    with demo_directory(tmp_path) as directory:
        assert list(tmp_path.iterdir()) == [directory]
        assert directory != left


def test_what_a_killed_demo_left_stays_while_one_of_its_workers_answers(tmp_path: Path) -> None:
    left = killed(tmp_path)
    run_dir = left / "reverse"
    path = socket_path_for(run_dir)
    write_worker_file(run_dir, WorkerFile("demo", os.getpid(), 1.8e9, str(path), "Reverse", "reverse.py"))
    with bind_unix(path):
        remove_left_over(tmp_path)
        assert (run_dir / "worker.log").exists()
    remove_socket(path)
    remove_left_over(tmp_path)
    assert not left.exists()


def test_what_is_not_certainly_left_over_stays(tmp_path: Path) -> None:
    unlocked, elsewhere = tmp_path / f"{PREFIX}unlocked", tmp_path / f"{PREFIX}elsewhere"
    unlocked.mkdir()
    elsewhere.mkdir()
    (elsewhere / LOCK_FILE).write_text(f"not {socket.gethostname()}")
    target = tmp_path / "target"
    target.mkdir()
    (target / LOCK_FILE).write_text(socket.gethostname())
    (tmp_path / f"{PREFIX}link").symlink_to(target)
    remove_left_over(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    assert (target / LOCK_FILE).exists()


def test_what_belongs_to_somebody_else_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = killed(tmp_path)
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    remove_left_over(tmp_path)
    assert left.exists()


def test_a_link_in_what_was_left_is_removed_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    left = killed(tmp_path)
    (left / "link").symlink_to(kept)
    remove_left_over(tmp_path)
    assert not left.exists()
    assert (kept / "file").exists()
