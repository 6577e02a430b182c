"""A recorder that runs out of disk, of room or of time: the run goes on, and what is missing is told."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS
from atropos_tui.monitor.run_file.schema import open_for_writing
from tests.run_file.recorded_run import LIMIT, RecordedRun, wait_until


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
