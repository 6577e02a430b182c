"""`ls` and `status` on run directories: under the root, linked there, named by path, and of workers that died early."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.cli import main
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.discovery import WorkerFile, list_runs, note_run_dir, write_worker_file
from atropos_tui.monitor.live_run import introduced
from tests.run_file.recorded_run import RecordedRun

GONE_PID = 4_194_304  # above what Linux gives


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "runs"
    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(root))
    return root


def died(run_dir: Path, started_at: float = 1.8e9, **facts: Any) -> Path:
    """A run directory whose worker is gone without a word."""
    run_dir.mkdir(parents=True)
    write_worker_file(
        run_dir,
        WorkerFile(
            run_id=run_dir.name, pid=GONE_PID, started_at=started_at, socket=str(run_dir / "control.sock"),
            environment="Env", file="env.py", host=socket.gethostname(), **facts,
        ),
    )  # fmt: skip
    return run_dir


def listed(capsys: pytest.CaptureFixture[str], *argv: object) -> list[str]:
    assert main(["ls", "--json", *map(str, argv)]) == 0
    return [run["name"] for run in json.loads(capsys.readouterr().out)]


def test_runs_of_the_root_of_another_root_and_of_named_paths(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    died(root / "mine", 100.0)
    other = died(tmp_path / "others" / "theirs", 200.0)
    died(tmp_path / "others" / "theirs-too", 300.0)
    assert listed(capsys) == ["mine"]
    assert listed(capsys, "--root", tmp_path / "others") == ["theirs-too", "theirs"]
    assert listed(capsys, other) == ["theirs"]
    assert listed(capsys, tmp_path / "others", root, other) == ["theirs-too", "theirs", "mine"]
    assert main(["ls", str(tmp_path)]) == 2
    assert "there is no run in" in capsys.readouterr().err


def test_a_run_started_elsewhere_is_found_under_the_root_too(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = died(tmp_path / "elsewhere" / "run")
    for _ in range(2):
        note_run_dir(elsewhere)
    note_run_dir(died(root / "here"))
    assert sorted(listed(capsys)) == ["here", "run"]
    assert {run.run_dir for run in list_runs()} == {elsewhere, root / "here"}
    assert main(["status", "run"]) == 4

    other = died(tmp_path / "further" / "run")
    for file in elsewhere.iterdir():
        file.unlink()
    elsewhere.rmdir()
    note_run_dir(other)
    assert [path.resolve() for path in root.iterdir() if path.is_symlink()] == [other]


def test_a_worker_that_died_before_its_record_began_is_told_by_its_file(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (died(root / "early") / "worker.log").write_text("ImportError: no module named x\n")
    assert main(["status", "early", "--json"]) == 4
    run = json.loads(capsys.readouterr().out)["run"]
    assert (run["pid"], run["run_id"], run["environment"], run["state"]) == (GONE_PID, "early", "Env", "crashed")
    assert "ImportError" in run["why_ended"]
    assert main(["ls"]) == 0
    assert "ImportError" in capsys.readouterr().out


def test_a_second_worker_that_died_early_is_not_taken_for_the_first(tmp_path: Path) -> None:
    first = RecordedRun(tmp_path / "run.db")
    first.delivered()
    first.view.drain()
    seen = first.view.snapshot()
    first.close()
    worker = WorkerFile(
        run_id="run-1", pid=os.getpid(), started_at=seen.taken_at + 1, socket="", environment="Env", file="env.py"
    )
    told = introduced(seen, worker)
    assert (told.run.pid, told.run.state, told.run.started_at) == (os.getpid(), RunState.STARTING, worker.started_at)
    assert introduced(told, worker) is told
