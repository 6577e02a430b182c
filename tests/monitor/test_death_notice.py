"""A worker that was killed is told of by who watched it: by one of them, with a real command."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.discovery import FoundRun, WorkerFile
from atropos_tui.monitor.live_run import found_dead
from atropos_tui.monitor.snapshot import RunSection, RunSnapshot

WORKER = WorkerFile(
    run_id="k7fq", pid=4711, started_at=1_800_000_000.5, socket="s", environment="Env", file="env.py", host="here"
)
DEAD = RunSection(run_id="k7fq", environment="Env", state=RunState.CRASHED, why_ended="the worker was killed", pid=4711)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command of the configuration appends what it was told."""
    path = tmp_path / "told"
    names = "('ATROPOS_ALERT', 'ATROPOS_ALERT_TEXT', 'ATROPOS_ALERT_SEVERE', 'ATROPOS_RUN', 'ATROPOS_STATE')"
    script = f"import os; open({str(path)!r}, 'a').write(' | '.join(os.environ[n] for n in {names}) + chr(10))"
    configure(tmp_path, monkeypatch, f"command = {json.dumps([sys.executable, '-c', script])}")
    return path


def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alerts: str) -> None:
    config = tmp_path / "config" / "atropos-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[alerts]\n{alerts}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def tell(run_dir: Path, worker: WorkerFile = WORKER, watchers: int = 1) -> None:
    async def tell_all() -> None:
        await asyncio.gather(*(DeathNotice(run_dir).tell(DEAD, worker) for _ in range(watchers)))

    asyncio.run(tell_all())


def test_of_many_who_watch_one_tells_and_of_the_next_worker_again(told: Path, run_dir: Path) -> None:
    tell(run_dir, watchers=5)
    assert told.read_text() == "crashed | the worker was killed | 1 | k7fq | crashed\n"
    (note,) = run_dir.glob("killed-*")
    assert (note.name, note.read_text()) == (
        "killed-4711-1800000000", "told the command for alerts: the worker was killed\n",
    )  # fmt: skip
    tell(run_dir, replace(WORKER, pid=4712))
    assert len(told.read_text().splitlines()) == 2


def test_without_a_command_nothing_is_noted(tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, "bell = true")
    tell(run_dir)
    assert not list(run_dir.iterdir())


@pytest.mark.parametrize(("code", "times"), [(errno.EACCES, 0), (errno.EROFS, 0), (errno.ENOSPC, 1)])
def test_who_may_not_write_there_is_not_told_and_on_a_full_disk_all_are(
    told: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch, code: int, times: int
) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, *rest: int, **options: int) -> int:
        if flags & os.O_EXCL:
            raise OSError(code, os.strerror(code))
        return opened(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    tell(run_dir)
    assert (told.read_text().count("crashed | ") if told.exists() else 0) == times


@pytest.mark.parametrize(
    ("alerts", "complaint"),
    [('command = "/nowhere/notify"', "cannot be run"), ("comand = 3", "there is no `alerts.comand`")],
)
def test_what_goes_wrong_is_the_last_line_of_the_workers_log(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch, alerts: str, complaint: str
) -> None:
    configure(tmp_path, monkeypatch, alerts)
    (run_dir / "worker.log").write_text("the last words\n")
    tell(run_dir)
    first, last = (run_dir / "worker.log").read_text().splitlines()
    assert first == "the last words"
    assert complaint in last


def test_a_death_is_told_with_signal_progress_and_last_words(run_dir: Path) -> None:
    (run_dir / "worker.log").write_text("one\n\ntwo\n")
    found = FoundRun(run_dir, WORKER, alive=False)
    seen = RunSnapshot(taken_at=98.0, run=RunSection(pid=4711, state=RunState.RUNNING, last_progress_at=88.0))
    words = "the worker was killed by signal 9 (SIGKILL), 12 s after its last progress; its log ends with: one | two"
    assert found_dead(seen, found, -9, 100.0).run.why_ended == words
    long_ago = found_dead(seen, found, None, 1e9, just_now=False).run
    assert long_ago.why_ended == "the worker is gone without a word; its log ends with: one | two"
    other_life = replace(seen, run=replace(seen.run, pid=1))
    assert "after its last progress" not in found_dead(other_life, found, -9, 100.0).run.why_ended
