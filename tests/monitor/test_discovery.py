"""Finding runs by their directories."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.monitor import discovery
from atropos_tui.monitor.discovery import WorkerFile, find_run, list_runs, new_run_dir, run_root, write_worker_file
from atropos_tui.monitor.unix_socket import answers, bind_unix, remove_socket, socket_path_for


def worker(run_dir: Path, **facts: object) -> WorkerFile:
    known: dict[str, Any] = {
        "run_id": run_dir.name, "pid": os.getpid(), "started_at": time.time(),
        "socket": str(run_dir / "control.sock"), "environment": "Env", "file": "env.py", "host": socket.gethostname(),
    }  # fmt: skip
    return WorkerFile(**known | facts)


def test_a_worker_that_answers_is_alive(tmp_path: Path) -> None:
    write_worker_file(tmp_path, worker(tmp_path))
    listener = bind_unix(tmp_path / "control.sock")
    found = find_run(tmp_path)
    assert found is not None
    assert (found.alive, found.stale) == (True, False)
    listener.close()


def test_a_worker_that_died_without_a_word_is_stale_even_if_its_number_is_somebody_elses_now(tmp_path: Path) -> None:
    lines = (
        "import sys; from pathlib import Path; from atropos_tui.monitor.unix_socket import bind_unix\n"
        "import os; bind_unix(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", lines, str(tmp_path / "control.sock")], check=False, timeout=20)
    assert (tmp_path / "control.sock").exists()
    write_worker_file(tmp_path, worker(tmp_path, pid=os.getpid()))
    found = find_run(tmp_path)
    assert found is not None
    assert (found.alive, found.stale) == (False, True)


def test_a_worker_that_ended_in_order_is_not_stale(tmp_path: Path) -> None:
    write_worker_file(tmp_path, worker(tmp_path, ended_at=time.time(), end_state="finished", why="done"))
    found = find_run(tmp_path)
    assert found is not None
    assert (found.alive, found.stale) == (False, False)


def test_a_worker_that_says_goodbye_just_when_it_is_looked_at_is_not_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_worker_file(tmp_path, worker(tmp_path))

    def gone_meanwhile(path: str) -> bool:
        write_worker_file(tmp_path, worker(tmp_path, ended_at=time.time(), end_state="finished", why="done"))
        return answers(path)

    monkeypatch.setattr(discovery, "answers", gone_meanwhile)
    found = find_run(tmp_path)
    assert found is not None
    assert (found.alive, found.stale, found.worker.why) == (False, False, "done")


def test_a_worker_that_follows_another_one_just_when_that_is_looked_at_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_worker_file(tmp_path, worker(tmp_path, pid=1))
    with ExitStack() as stack:

        def followed_meanwhile(path: str) -> bool:
            if not answers(path):
                stack.enter_context(bind_unix(tmp_path / "control.sock"))
                write_worker_file(tmp_path, worker(tmp_path, pid=2))
                return False
            return True

        monkeypatch.setattr(discovery, "answers", followed_meanwhile)
        found = find_run(tmp_path)
    assert found is not None
    assert (found.alive, found.worker.pid) == (True, 2)


def test_a_worker_on_another_host_cannot_be_judged_from_here(tmp_path: Path) -> None:
    write_worker_file(tmp_path, worker(tmp_path, host="gpu-node-17"))
    found = find_run(tmp_path)
    assert found is not None
    assert (found.elsewhere, found.stale) == (True, False)


def test_runs_are_listed_newest_first_and_what_is_no_run_is_left_out(tmp_path: Path) -> None:
    for number, name in enumerate(("old", "older", "new")):
        (tmp_path / name).mkdir()
        write_worker_file(tmp_path / name, worker(tmp_path / name, started_at=[200, 100, 300][number]))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "worker.json").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").write_text("")
    assert [run.run_dir.name for run in list_runs(tmp_path)] == ["new", "old", "older"]
    assert list_runs(tmp_path / "nowhere") == ()


def test_the_worker_file_is_for_the_owner_only(tmp_path: Path) -> None:
    write_worker_file(tmp_path, worker(tmp_path))
    assert stat.S_IMODE((tmp_path / "worker.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["worker.json"]


def test_on_a_full_disk_the_end_of_a_run_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_worker_file(tmp_path, worker(tmp_path, why="x" * 300))

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(discovery, "_write_new", full)
    ended = worker(tmp_path, ended_at=5.0, end_state="finished", why="done")
    write_worker_file(tmp_path, ended)
    found = find_run(tmp_path)
    assert found is not None
    assert found.worker == ended
    with pytest.raises(OSError, match="No space"):
        write_worker_file(tmp_path / "new", ended)


def test_each_run_gets_a_directory_of_its_own_for_the_owner_only(tmp_path: Path) -> None:
    first = new_run_dir("My Env/…", tmp_path / "runs", now=1.8e9)
    second = new_run_dir("My Env/…", tmp_path / "runs", now=1.8e9)
    assert first != second
    assert first.name.startswith("My-Env-20270115-")
    assert stat.S_IMODE(first.stat().st_mode) == 0o700


def test_the_root_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(tmp_path))
    assert run_root() == tmp_path
    monkeypatch.delenv("ATROPOS_TUI_RUNS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run_root() == tmp_path / "state" / "atropos-tui" / "runs"


def test_a_run_directory_too_deep_for_a_socket_gets_one_elsewhere(tmp_path: Path) -> None:
    assert socket_path_for(Path("/run/r")) == Path("/run/r/control.sock")
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    path = socket_path_for(deep)
    bind_unix(path).close()
    remove_socket(path)
    assert not path.parent.exists()


def test_taking_a_socket_away_leaves_a_run_directory_as_it_is(tmp_path: Path) -> None:
    run_dir = tmp_path / "atropos-tui-of-mine"
    run_dir.mkdir()
    (run_dir / "outbox.db").write_text("groups")
    bind_unix(run_dir / "control.sock").close()
    remove_socket(run_dir / "control.sock")
    assert [path.name for path in run_dir.iterdir()] == ["outbox.db"]


def test_a_worker_too_busy_to_accept_is_alive(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            waiting.setblocking(False)
            waiting.connect_ex(str(path))
        assert answers(path)
