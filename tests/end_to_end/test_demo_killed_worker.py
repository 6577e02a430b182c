"""The demo says which of its workers was killed, tells the operator, and starts another one if asked to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.marked_processes import MarkedProcesses, wait_until
from tests.verbs.terminal import Terminal


def worker(processes: MarkedProcesses) -> int:
    """The worker's process; 0 while there is none."""
    return next((pid for pid, command in processes.alive().items() if "-m atropos_tui.worker" in command), 0)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Where the operator's command appends a line for each alert."""
    path = tmp_path / "told"
    script = tmp_path / "page-me"
    script.write_text(f'#!/bin/sh\necho "$ATROPOS_ALERT $ATROPOS_RUN $ATROPOS_ALERT_TEXT" >> {path}\n')
    script.chmod(0o700)
    config = tmp_path / "config" / "atropos-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[alerts]\ncommand = "{script}"\n')
    return path


def test_on_the_screen_it_is_shown_and_another_goes_on(processes: MarkedProcesses, told: Path, tmp_path: Path) -> None:
    environment = processes.environment | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    terminal = Terminal([sys.executable, "-m", "atropos_tui", "demo"], environment)
    try:
        terminal.wait_for("● running", "progress")
        first = worker(processes)
        os.kill(first, signal.SIGKILL)
        terminal.wait_for("crashed", "killed by signal 9 (SIGKILL)", "R starts it again")
        wait_until(told.exists)
        terminal.press("R")
        terminal.wait_for("again?")
        terminal.press("y")
        terminal.wait_for("● running")
        assert worker(processes) not in (0, first)
        terminal.press("q")
        terminal.wait_for("Leave")
        terminal.press("s")
        assert terminal.wait_for_exit() == 0
    finally:
        terminal.end()
    wait_until(lambda: not processes.alive())
    (line,) = told.read_text().splitlines()
    assert line.startswith("crashed demo the worker was killed by signal 9 (SIGKILL), ")


def test_without_a_screen_it_ends_with_the_reason(processes: MarkedProcesses, told: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "atropos_tui", "demo", "--headless", "--seconds", "300"]
    environment = processes.environment | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            assert "started" in demo.stdout.readline()
            os.kill(worker(processes), signal.SIGKILL)
            _, complaint = demo.communicate(timeout=120)
        finally:
            demo.kill()  # or it would be waited for
    assert demo.returncode == 1
    assert complaint.startswith("atropos-tui: ")
    wait_until(lambda: not processes.alive())
    (line,) = told.read_text().splitlines()
    assert line.startswith("crashed demo the worker was killed by signal 9 (SIGKILL)")
