"""What models and environments wrote is data to a terminal without a screen too, in whatever locale."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atropos_tui.cli import main
from atropos_tui.errors import AtroposError
from atropos_tui.monitor.discovery import WorkerFile, write_worker_file
from atropos_tui.monitor.snapshot import RunSection, RunSnapshot
from atropos_tui.verbs import batch_mode
from atropos_tui.verbs.plain import summary_line
from tests.end_to_end.marked_processes import MarkedProcesses
from tests.verbs.terminal import Terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2J\nnew line"
SHOWN = "‹ESC›]0;owned‹BEL›‹ESC›[2J"


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "runs"
    run_dir = root / "night"
    run_dir.mkdir(parents=True)
    write_worker_file(
        run_dir,
        WorkerFile(
            run_id="night", pid=1, started_at=time.time() - 90, socket=str(run_dir / "control.sock"), environment="Env",
            file="env.py", ended_at=time.time(), end_state="crashed", why=HOSTILE,
        ),
    )  # fmt: skip
    (run_dir / "worker.log").write_text(HOSTILE + "\n")
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(root))
    return run_dir


def test_a_run_stays_one_line_of_the_list(ended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("NAME")
    assert row.startswith("night")
    assert row.endswith(SHOWN + "↵new line")


def test_a_headline_is_shown() -> None:
    assert f"({SHOWN}↵new line)" in summary_line(RunSnapshot(run=RunSection(headline=HOSTILE)))


def test_an_error_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(mode: str, argv: object) -> int:
        raise AtroposError(f"the run crashed: {HOSTILE}")

    monkeypatch.setattr(batch_mode, "run_batch_mode", fail)
    assert main(["process"]) == 1
    assert capsys.readouterr().err == f"atropos-tui: the run crashed: {SHOWN}\nnew line\n"


def test_a_terminal_shows_the_log_and_a_pipe_gets_it_as_it_is(ended: Path) -> None:
    environment = MarkedProcesses().environment | {"ATROPOS_TUI_RUNS": str(ended.parent), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "atropos_tui", "logs", "night"]
    piped = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)
    assert piped.stdout == HOSTILE.encode() + b"\n"
    terminal = Terminal(command, environment)
    try:
        terminal.wait_for(SHOWN, "new line")
    finally:
        terminal.child.close(force=True)


@pytest.mark.parametrize("verb", [("ls",), ("--help",), ("logs", "night")])
def test_a_locale_with_few_characters_gets_an_answer(ended: Path, verb: tuple[str, ...]) -> None:
    (ended / "worker.log").write_text("→ 字 …\n", encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "atropos_tui", *verb], env=environment, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout
