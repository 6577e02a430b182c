"""The screen on real terminals that are lost: the run goes on, and the next screen finds it whole."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atropos_tui.ledger.events import GroupDelivered
from atropos_tui.monitor.run_file.reader import RunFileReader
from tests.end_to_end.marked_processes import wait_until
from tests.process_state import is_alive
from tests.verbs.served_runs import ServedRuns
from tests.verbs.terminal import Terminal


@pytest.fixture
def open_terminal(runs: ServedRuns) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(*command: str) -> Terminal:
        opened.append(Terminal(command, runs.environment))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.end()


def check_record(run_dir: Path, delivered: int) -> None:
    """No event is missing, and so many groups at least were delivered in one life."""
    reader = RunFileReader(run_dir / "run.db")
    events = list(reader.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(reader.lives()) == 1
    assert sum(isinstance(event, GroupDelivered) for event in events) >= delivered


def test_lost_terminals_leave_the_run_and_the_next_screen_finds_it_whole(
    runs: ServedRuns, open_terminal: Callable[..., Terminal]
) -> None:
    run_dir = runs.root / "kept"
    terminal = open_terminal(*runs.serve_command(run_dir))
    terminal.wait_for("running", "Scores")
    pid = runs.worker(run_dir)["pid"]
    for end in (signal.SIGHUP, signal.SIGKILL):
        before = runs.status(run_dir)["ledger"]["by_outcome"]["delivered"]
        terminal.child.kill(end)
        wait_until(lambda terminal=terminal: not terminal.child.isalive())  # type: ignore[misc]
        meanwhile = runs.wait_for_groups(run_dir, before + 5)
        assert meanwhile["run"]["pid"] == pid
        assert meanwhile["ledger"]["balanced"]
        terminal = open_terminal(*runs.command("attach", run_dir))
        terminal.wait_for("running", "Scores")

    terminal.press("q")
    terminal.wait_for("Leave")
    terminal.press("s")
    assert terminal.wait_for_exit() == 0
    wait_until(lambda: not is_alive(pid))
    check_record(run_dir, meanwhile["ledger"]["by_outcome"]["delivered"])

    open_terminal(*runs.command("open", run_dir)).wait_for("finished", "Scores")


def test_a_worker_that_is_killed_is_shown_with_its_signal_and_then_its_successor(
    runs: ServedRuns, open_terminal: Callable[..., Terminal]
) -> None:
    run_dir = runs.root / "doomed"
    terminal = open_terminal(*runs.serve_command(run_dir))
    terminal.wait_for("running", "Scores")
    os.kill(runs.worker(run_dir)["pid"], signal.SIGKILL)
    terminal.wait_for("crashed", "SIGKILL")
    runs.serve("doomed")
    terminal.wait_for("running")


def test_a_crashed_run_is_started_again_by_a_key_and_goes_on_where_it_was(
    runs: ServedRuns, open_terminal: Callable[..., Terminal]
) -> None:
    run_dir = runs.root / "again"
    terminal = open_terminal(*runs.serve_command(run_dir))
    terminal.wait_for("running", "Scores")
    runs.wait_for_groups(run_dir, 3)
    first = runs.worker(run_dir)["pid"]
    os.kill(first, signal.SIGKILL)
    terminal.wait_for("crashed", "SIGKILL", "R starts it again")
    terminal.press("R")
    terminal.wait_for("Start Counting again?")
    terminal.press("y")
    terminal.wait_for("running")
    after = runs.wait_for_groups(run_dir, 3)
    assert after["run"]["pid"] == runs.worker(run_dir)["pid"] != first
    reader = RunFileReader(run_dir / "run.db")
    assert len(reader.lives()) == 2
    assert [event.seq for event in reader.events()] == list(range(1, reader.extent().seq + 1))
    reader.close()

    second = runs.worker(run_dir)["pid"]
    terminal.press("q")
    terminal.wait_for("Leave")
    terminal.press("s")
    assert terminal.wait_for_exit() == 0
    wait_until(lambda: not is_alive(second))
