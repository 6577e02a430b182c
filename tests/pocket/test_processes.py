"""Server and trainer as processes: wrong use is one line and exit status 2, and neither outlives its owner."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = "atropos_tui.pocket.server"
TRAINER = "atropos_tui.pocket.trainer"
STATUS_FILE = "status.json"
URLS = ("--api", "http://127.0.0.1:9", "--inference", "http://127.0.0.1:9")


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


def run(directory: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        (SERVER, ["--port", "high"], "invalid int value"),
        (SERVER, ["--wrong"], "--wrong"),
        (TRAINER, [], "--api"),
        (TRAINER, ["--api", "localhost", "--inference", "http://x", "--status-file", STATUS_FILE], "--api localhost"),
        (
            TRAINER,
            ["--api", "http://x", "--inference", "http://x:high", "--status-file", STATUS_FILE],
            "--inference http://x:high",
        ),
        (TRAINER, [*URLS, "--status-file", "/nowhere/status.json"], "/nowhere"),
        (TRAINER, [*URLS, "--status-file", STATUS_FILE, "--weights-dir", "/nowhere"], "/nowhere"),
        (TRAINER, [*URLS, "--status-file", STATUS_FILE, "--checkpoint-dir", "/nowhere"], "--checkpoint-dir"),
        (TRAINER, [*URLS, "--status-file", STATUS_FILE, "--batch-size", "0"], "--batch-size 0"),
        (TRAINER, [*URLS, "--status-file", STATUS_FILE, "--checkpoint-every", "0"], "--checkpoint-every 0"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(tmp_path: Path, module: str, arguments: list[str], words: str) -> None:
    done = run(tmp_path, module, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line_and_status_2(tmp_path: Path, taken_port: str) -> None:
    done = run(tmp_path, SERVER, "--port", taken_port)
    assert done.returncode == 2
    assert done.stderr.startswith(f"cannot listen on 127.0.0.1:{taken_port}")
    assert done.stderr.count("\n") == 1


def test_who_started_the_server_is_told_why_it_did_not_come_up(taken_port: str) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-m", SERVER, "--port", taken_port, "--ready-fd", str(write)]
    with subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL), os.fdopen(read) as said:
        os.close(write)
        assert '"error": "cannot listen' in said.readline()


@pytest.mark.parametrize(("module", "arguments"), [(SERVER, ["--port", "0"]), (TRAINER, list(URLS))])
def test_it_ends_with_its_owner(module: str, arguments: list[str], tmp_path: Path) -> None:
    if module == TRAINER:
        arguments = [*arguments, "--status-file", str(tmp_path / STATUS_FILE)]
    ready_read, ready_write = os.pipe()
    lifeline_read, lifeline_write = os.pipe()
    descriptors = ["--ready-fd", str(ready_write), "--lifeline-fd", str(lifeline_read)]
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments, *descriptors], pass_fds=[ready_write, lifeline_read],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        os.close(ready_write)
        os.close(lifeline_read)
        with os.fdopen(ready_read) as said:
            assert f'"pid": {process.pid}' in said.readline()
        os.close(lifeline_write)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
