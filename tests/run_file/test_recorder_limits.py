"""A recorder that runs out of disk, of room or of time: the run goes on, and what is missing is told."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS
from atropos_tui.monitor.run_file.schema import open_for_writing
from tests.run_file.recorded_run import LIMIT, RecordedRun, wait_until

ROOT = Path(__file__).resolve().parents[2]


def may_mount() -> bool:
    """Whether a process may have a file system of its own."""
    if shutil.which("unshare") is None:
        return False
    mount = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(mount, capture_output=True, timeout=60, check=False).returncode == 0


def opened_on_a_small_disk(path: Path) -> sqlite3.Connection:
    """SQLite then says what it says when the disk is full."""
    database = open_for_writing(path)
    database.execute("PRAGMA max_page_count = 40")
    return database


def test_a_full_disk_stops_the_recording_with_an_alert_and_not_the_run(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db", opened=opened_on_a_small_disk)
    run.write()
    for number in range(200):
        run.delivered(tokens=2_000, text=f"{number} " * 500)
        run.view.drain()
    wait_until(lambda: run.recorder.section().stopped, "stopped")
    assert run.recorder.section().stopped == "the disk is full"
    run.delivered()
    run.view.drain()
    snapshot = run.view.snapshot()
    assert snapshot.ledger.by_outcome[Outcome.DELIVERED] == 201
    alert = next(alert for alert in snapshot.run.alerts if alert.name == "record")
    assert alert.severe
    assert "the disk is full" in alert.text
    assert next(event.seq for event in RunFileReader(run.path).events()) == 1
    run.close()


def check_stopped_and_whole(told: bytes, path: Path, why: str) -> None:
    """The run went on, said so, and what was written before is there."""
    result = json.loads(told)
    assert result["shown"] == result["delivered"]
    assert result["balanced"]
    assert why in result["stopped"]
    assert [why in alert for alert in result["alerts"]] == [True]
    reader = RunFileReader(path)
    assert [event.seq for event in reader.events()] == list(range(1, reader.extent().seq + 1))
    assert 0 < reader.page(GroupFilter(outcome="delivered"), None, 1).total < result["delivered"]
    reader.close()


@pytest.mark.skipif(not may_mount(), reason="mounting a small file system is not allowed here")
def test_a_file_system_that_is_full_stops_the_recording_and_not_the_run(tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    kept.mkdir()
    script = 'mount -t tmpfs -o size=3m tmpfs "$1" && "$2" -m tests.run_file.filling_process "$1" && cp "$1"/* "$3"'
    told = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", disk, sys.executable, kept],
        cwd=ROOT, capture_output=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    check_stopped_and_whole(told, kept / "run.db", "the disk is full")


def test_a_file_that_may_not_grow_stops_the_recording_and_not_the_run(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.run_file.filling_process", tmp_path, "2000000"],
        cwd=ROOT, capture_output=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    check_stopped_and_whole(told, tmp_path / "run.db", "I/O error")


def test_a_file_that_cannot_be_made_stops_the_recording(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "no" / "run.db")
    wait_until(lambda: run.recorder.section().stopped, "stopped")
    run.delivered()
    run.view.drain()
    assert run.view.snapshot().ledger.by_outcome[Outcome.DELIVERED] == 1
    run.close()


def test_at_the_size_limit_delivered_groups_make_room_before_lost_ones(tmp_path: Path) -> None:
    limit = 1_500_000
    run = RecordedRun(tmp_path / "run.db", size_limit=limit)
    noise = iter(range(10_000_000))
    skipped = []
    for number in range(300):
        text = " ".join(f"w{next(noise) * 7919 % 1_000_003}" for _ in range(400))
        if number % 10 == 0:
            skipped.append(run.skipped(text=text))
        run.delivered(text=text, tokens=400)
        if number % 20 == 0:
            run.write()
    run.close()
    section = run.recorder.section()
    assert section.stopped == ""
    assert section.size <= limit
    assert section.dropped_arrays > 0
    assert section.dropped_contents > 0
    reader = RunFileReader(run.path)
    assert reader.page(GroupFilter(), None, 1).total == 330
    assert all(reader.find(group_id).rollouts for group_id in skipped)  # type: ignore[union-attr]
    delivered = reader.page(GroupFilter(outcome="delivered"), None, 400).rows
    has_content = [row.has_content for row in reversed(delivered)]
    assert has_content == sorted(has_content)  # the oldest are those without
    assert not has_content[0]
    assert has_content[-1]
    page = reader.page(GroupFilter(search="answer OR question"), None, 10)
    assert page.total == 0
    assert reader.page(GroupFilter(search="question"), None, 10).total == sum(has_content) + len(skipped)


def test_contents_that_come_too_fast_are_counted_and_their_groups_listed(tmp_path: Path) -> None:
    may_open = threading.Event()

    def opened_late(path: Path) -> sqlite3.Connection:
        assert may_open.wait(LIMIT)
        return open_for_writing(path)

    run = RecordedRun(tmp_path / "run.db", opened=opened_late)
    for _ in range(MAX_CONTENTS + 50):
        run.skipped()
        run.view.drain()
    may_open.set()
    run.close()
    assert run.recorder.section().missed_contents == 50
    reader = RunFileReader(run.path)
    rows = reader.page(GroupFilter(), None, 1000).rows
    assert (len(rows), sum(row.has_content for row in rows)) == (MAX_CONTENTS + 50, MAX_CONTENTS)
    assert RunFileReader(run.path).dropped() == {"unwritten": 50}


def test_contents_beyond_their_share_of_the_processor_are_counted_only(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db", content_share=-1e6)  # whatever was saved up is spent at once
    group_id = run.skipped()
    run.close()
    assert run.recorder.section().missed_contents == 1
    group = RunFileReader(run.path).find(group_id)
    assert group is not None
    assert (group.row.scores, group.row.has_content) == ((0.0, 1.0), False)
