"""Processes started by us: ready, refused, dead too early, deaf to SIGTERM, orphaned. Real processes throughout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.supervisor import ChildProcess, StartError, launch, start_process
from tests.process_state import is_alive

LIMIT = 60.0

# What every script below can use: the flags, and the manners of a child process.
PROLOGUE = """\
import argparse, json, os, signal, subprocess, sys, threading, time
from atropos_tui.child import announce_ready, end_with_parent
parser = argparse.ArgumentParser()
parser.add_argument("--ready-fd", type=int)
parser.add_argument("--lifeline-fd", type=int)
parser.add_argument("rest", nargs="*")
args = parser.parse_args()
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    """A command that runs these lines of Python."""

    def command(lines: str) -> list[str]:
        path = tmp_path / "child.py"
        path.write_text(PROLOGUE + textwrap.dedent(lines))
        return [sys.executable, str(path)]

    return command


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


STAYS = """
announce_ready(args.ready_fd, url="http://here", rest=args.rest)
end_with_parent(args.lifeline_fd)
signal.pause()
"""


def test_a_process_says_what_it_is_when_it_is_ready(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    with start_process(script(STAYS), ["--", "--env.x", "1"], log_path=tmp_path / "log") as child:
        assert child.ready == {"pid": child.pid, "url": "http://here", "rest": ["--env.x", "1"]}
        assert child.poll() is None
        assert os.getsid(child.pid) == child.pid != os.getsid(0)
    assert child.poll() == -signal.SIGTERM
    assert not is_alive(child.pid)


def test_a_refusal_is_a_usage_error_of_one_line(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    command = script('announce_ready(args.ready_fd, error="no file x.py; give another"); sys.exit(2)')
    with pytest.raises(UsageError, match=r"^no file x\.py; give another$"):
        start_process(command, log_path=tmp_path / "log")


def test_a_process_that_dies_at_start_shows_its_status_and_last_words(
    script: Callable[[str], list[str]], tmp_path: Path
) -> None:
    with pytest.raises(StartError, match=r"exit status 3 before it was ready.*ends with: no such device"):
        start_process(script('print("no such device", flush=True); sys.exit(3)'), log_path=tmp_path / "log")


def test_a_process_killed_at_start_names_the_signal(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    with pytest.raises(StartError, match="was ended by SIGKILL before it was ready"):
        start_process(script("os.kill(os.getpid(), signal.SIGKILL)"), log_path=tmp_path / "log")


def test_a_process_that_is_never_ready_is_ended(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    child = launch(script("signal.pause()"), log_path=tmp_path / "log")
    try:
        with pytest.raises(StartError, match=r"was not ready after 0\.3 s"):
            child.wait_ready(0.3)
    finally:
        child.terminate()
    with pytest.raises(StartError):
        start_process(script("signal.pause()"), log_path=tmp_path / "log", ready_timeout=0.3)


def test_a_program_that_is_not_there_raises_and_leaks_no_pipe(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        launch([str(tmp_path / "no such program")], log_path=tmp_path / "log")
    assert len(os.listdir("/proc/self/fd")) == before


def test_ending_leaks_no_pipe(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for detached in (False, True):
        start_process(script(STAYS), log_path=tmp_path / "log", detached=detached).terminate()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_process_deaf_to_sigterm_is_killed_after_its_grace(
    script: Callable[[str], list[str]], tmp_path: Path
) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAYS
    child = start_process(script(deaf), log_path=tmp_path / "log")
    began = time.monotonic()
    assert child.terminate(grace=0.5) == -signal.SIGKILL
    assert 0.5 <= time.monotonic() - began < LIMIT
    assert not is_alive(child.pid)


def test_a_killed_process_is_waited_for_though_it_had_no_grace(
    script: Callable[[str], list[str]], tmp_path: Path
) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAYS
    child = start_process(script(deaf), log_path=tmp_path / "log")
    assert child.terminate(grace=0.0) == -signal.SIGKILL


STARTS_A_DEAF_ONE = """
deaf = subprocess.Popen([sys.executable, "-c", '''
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
signal.pause()
'''], stdout=subprocess.PIPE)
deaf.stdout.readline()
announce_ready(args.ready_fd, grandchild=deaf.pid)
"""


@pytest.mark.parametrize("then", ["signal.pause()", "sys.exit(0)"])
def test_what_a_process_started_itself_ends_with_it(
    then: str, script: Callable[[str], list[str]], tmp_path: Path
) -> None:
    child = start_process(script(STARTS_A_DEAF_ONE + then), log_path=tmp_path / "log")
    grandchild = child.ready["grandchild"]
    child.terminate(grace=1.0)
    until(lambda: not is_alive(grandchild))


def test_the_exit_of_a_process_is_noticed(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    child = start_process(script('announce_ready(args.ready_fd); print("bye"); sys.exit(7)'), log_path=tmp_path / "log")
    assert child.wait(LIMIT) == 7
    assert child.last_lines() == ["bye"]
    assert child.terminate() == 7


OWNER = """
import sys, signal
from pathlib import Path
from atropos_tui.monitor.supervisor import start_process
child = start_process([sys.executable, sys.argv[1]], log_path=Path(sys.argv[2]), detached=sys.argv[3] == "detached")
print(child.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("how", ["attached", "detached"])
def test_when_the_owner_is_killed_its_process_ends_unless_it_is_detached(
    how: str, script: Callable[[str], list[str]], tmp_path: Path
) -> None:
    command = script(STAYS)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, command[1], str(tmp_path / "log"), how], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    with owner.stdout:
        pid = int(owner.stdout.readline())
    assert is_alive(pid)
    owner.kill()
    owner.wait(LIMIT)
    if how == "attached":
        until(lambda: not is_alive(pid))
    else:
        until(lambda: parent_of(pid) != owner.pid)
        assert is_alive(pid)
        os.kill(pid, signal.SIGKILL)


def test_processes_can_be_started_beside_each_other(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    command = script(STAYS)
    children: list[ChildProcess] = [launch(command, log_path=tmp_path / f"log{index}") for index in range(3)]
    try:
        assert [child.wait_ready(LIMIT)["url"] for child in children] == ["http://here"] * 3
    finally:
        for child in children:
            child.terminate()


def test_the_log_keeps_what_was_there(script: Callable[[str], list[str]], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from an earlier run\n")
    child = start_process(script('print(json.dumps({"n": 1})); announce_ready(args.ready_fd)'), log_path=log)
    child.wait(LIMIT)
    assert child.last_lines() == ["from an earlier run", json.dumps({"n": 1})]
