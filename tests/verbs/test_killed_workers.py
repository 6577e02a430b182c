"""A worker that is killed can tell nobody; whoever watches it tells the operator, once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.marked_processes import wait_until
from tests.process_state import is_alive
from tests.verbs.served_runs import ServedRuns
from tests.verbs.terminal import Terminal

BELL = b"\a"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the operator's command appends a line for each alert; the bell is wanted too."""
    path = tmp_path / "told"
    names = "('ATROPOS_ALERT', 'ATROPOS_STATE', 'ATROPOS_RUN', 'ATROPOS_ALERT_TEXT')"
    script = f"import os; open({str(path)!r}, 'a').write(' | '.join(os.environ[n] for n in {names}) + chr(10))"
    config = tmp_path / "config" / "atropos-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    command = json.dumps([sys.executable, "-c", script])
    config.write_text(f"[alerts]\nbell = true\ncommand = {command}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


def bells(written: bytes) -> int:
    """How often the terminal rang; the same character ends sequences that set the look of the pointer."""
    return re.sub(rb"\x1b\][^\a\x1b]*\a", b"", written).count(BELL)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_of_two_screens_one_runs_the_command_and_both_ring(runs: ServedRuns, told: Path, tmp_path: Path) -> None:
    run_dir = runs.root / "doomed"
    screens = [Terminal(runs.serve_command(run_dir), runs.environment)]
    try:
        screens[0].wait_for("running", "progress", "Scores")
        runs.wait_for_groups(run_dir, 3)
        screens.append(Terminal(runs.command("attach", run_dir, "--read-only"), runs.environment))
        screens[1].wait_for("running", "progress", "Scores")
        logs = [tmp_path / "first", tmp_path / "second"]
        with logs[0].open("wb") as first, logs[1].open("wb") as second:
            screens[0].child.logfile_read, screens[1].child.logfile_read = first, second
            os.kill(runs.worker(run_dir)["pid"], signal.SIGKILL)
            screens[0].wait_for("crashed", "the worker was killed by signal 9 (SIGKILL)", "after its last progress")
            screens[1].wait_for("crashed", "gone without a word", "after its last progress")
            for screen in screens:
                screen.press("q")
                screen.wait_for("Leave")
                screen.press("d")
                screen.wait_for_exit()
        assert [bells(log.read_bytes()) for log in logs] == [1, 1]
    finally:
        for screen in screens:
            screen.end()
    (line,) = lines(told)
    assert re.match(
        r"crashed \| crashed \| doomed \| the worker (was killed|is gone).*, \d+ s after its last prog", line
    )


def test_serve_without_a_screen_tells_with_the_signal(runs: ServedRuns, told: Path) -> None:
    run_dir = runs.root / "alone"
    with subprocess.Popen(
        runs.serve_command(run_dir, "--headless"), env=runs.environment, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True,
    ) as serving:  # fmt: skip
        try:
            wait_until(lambda: (run_dir / "worker.json").exists(), within=60.0)
            runs.wait_for_groups(run_dir, 1)
            os.kill(runs.worker(run_dir)["pid"], signal.SIGKILL)
            _, complaint = serving.communicate(timeout=60)
        finally:
            serving.kill()  # or it would be waited for
    assert serving.returncode == 1
    assert "the worker was killed by signal 9 (SIGKILL)" in complaint
    assert BELL.decode() not in complaint
    (line,) = lines(told)
    assert line.startswith("crashed | crashed | alone | the worker was killed by signal 9 (SIGKILL)")


def test_attach_without_a_screen_watches_a_detached_run(runs: ServedRuns, told: Path) -> None:
    run_dir = runs.serve("detached")
    with subprocess.Popen(
        runs.command("attach", run_dir, "--plain"), env=runs.environment, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # as nohup does
    ) as watching:  # fmt: skip
        try:
            assert watching.stdout is not None
            assert "running" in watching.stdout.readline()
            watching.send_signal(signal.SIGHUP)
            os.kill(runs.worker(run_dir)["pid"], signal.SIGKILL)
            printed, _ = watching.communicate(timeout=60)
        finally:
            watching.kill()
    assert "crashed: the worker is gone without a word" in printed
    (line,) = lines(told)
    assert line.startswith("crashed | crashed | detached | the worker is gone without a word")


def test_the_fleet_tells_of_a_run_that_nobody_else_watches(runs: ServedRuns, told: Path) -> None:
    run_dir = runs.serve("night")
    runs.wait_for_groups(run_dir, 1)
    fleet = Terminal(runs.command("fleet"), runs.environment)
    try:
        fleet.wait_for("1 alive", "night", "running")
        os.kill(runs.worker(run_dir)["pid"], signal.SIGKILL)
        fleet.wait_for("1 ended")
        wait_until(lambda: lines(told))
    finally:
        fleet.end()
    (line,) = lines(told)
    assert line.startswith("crashed | crashed | night | the worker is gone without a word")


def test_a_run_that_is_stopped_or_was_dead_before_is_no_news(runs: ServedRuns, told: Path) -> None:
    run_dir = runs.serve("old")
    screen = Terminal(runs.command("attach", run_dir), runs.environment)
    try:
        screen.wait_for("running", "Scores")
        runs.run("stop", run_dir)
        screen.wait_for("finished")
        screen.press("q")
        screen.wait_for("Leave")
        screen.press("d")
        screen.wait_for_exit()
    finally:
        screen.end()
    killed = runs.serve("killed")
    os.kill(runs.worker(killed)["pid"], signal.SIGKILL)
    wait_until(lambda: "crashed" in runs.run("ls"))
    runs.run("status", killed, status=4)
    assert lines(told) == []


def test_a_worker_that_told_of_its_crash_itself_is_not_told_of_again(runs: ServedRuns, told: Path) -> None:
    setup = "\n    async def setup(self):\n        raise KeyError('no such column')\n"
    runs.file.write_text(runs.file.read_text() + setup)
    crashed = runs.serve("broken")
    screen = Terminal(runs.command("attach", crashed), runs.environment)
    try:
        screen.wait_for("✗ crashed", "no such column")
        wait_until(lambda: lines(told))
        pid = runs.worker(crashed)["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid))
        screen.press("q")
        screen.wait_for("Leave")
        screen.press("d")
        screen.wait_for_exit()
    finally:
        screen.end()
    (line,) = lines(told)
    assert "no such column" in line
