"""A run in a file: what was told is there, read by another connection, and a new life goes on in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.run_file import schema
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.run_file.schema import open_for_writing
from atropos_tui.monitor.run_file.writer import RecordLevel
from tests.run_file.recorded_run import RecordedRun, rollouts, wait_until

ANY = GroupFilter()


def no_pieces(ids: object) -> list[str]:
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def test_a_group_reads_back_as_it_was(path: Path) -> None:
    run = RecordedRun(path)
    given = rollouts(0.5, tokens=40)
    delivered, failed = run.delivered(score=0.5, tokens=40), run.failed()
    run.close()
    reader = RunFileReader(path)
    group = reader.find(delivered)
    assert group is not None
    detail = group.detail(no_pieces)
    assert (detail.row.outcome, detail.row.scores, detail.row.step) == (Outcome.DELIVERED, (0.5, 1.5), 3)
    for shown, was in zip(detail.rollouts, given, strict=True):
        assert (shown.score, shown.finish_reason, shown.parts) == (was.score, "stop", {"format": 0.5})
        assert shown.tokens == tuple(was.tokens)
        assert shown.masks == tuple(was.masks)
        assert shown.logprobs == tuple(was.logprobs)
        assert shown.messages == tuple(was.messages)
    broken = reader.find(failed)
    assert broken is not None
    assert (broken.ended.error, broken.ended.traceback) == ("KeyError: 'x'", "Traceback …")


def test_events_are_there_without_gap_over_two_lives(path: Path) -> None:
    for _ in range(2):
        run = RecordedRun(path)
        run.delivered()
        run.skipped()
        run.close()
    reader = RunFileReader(path)
    assert [event.seq for event in reader.events()] == list(range(1, reader.extent().seq + 1))
    assert [life.first_seq for life in reader.lives()] == [1, 10]
    assert reader.lives()[0].config == {"group_size": 2}
    assert reader.extent().place == 4


def test_a_group_that_an_earlier_life_left_in_the_outbox_keeps_its_content(path: Path) -> None:
    first = RecordedRun(path)
    left = first.enqueued(text="from the first life")
    first.close()
    second = RecordedRun(path)
    second.take_over(left)
    second.deliver(left)
    second.close()
    group = RunFileReader(path).find(left)
    assert group is not None
    assert "from the first life" in str(group.detail(no_pieces).rollouts[0].messages)


def test_group_numbers_that_two_lives_use_are_two_groups(path: Path) -> None:
    for text in ("old", "new"):
        run = RecordedRun(path)
        run.skipped(text=text)
        run.close()
    reader = RunFileReader(path)
    assert reader.page(ANY, None, 10).total == 2
    newest = reader.find(1)
    assert newest is not None
    assert "new 0" in str(newest.detail(no_pieces).rollouts)


@pytest.mark.parametrize(
    ("level", "tokens", "messages"),
    [(RecordLevel.ALL, 20, 2), (RecordLevel.MESSAGES, 0, 2)],
)
def test_a_level_says_how_much_of_a_rollout_is_kept(path: Path, level: RecordLevel, tokens: int, messages: int) -> None:
    run = RecordedRun(path, level)
    group_id = run.skipped()
    run.close()
    group = RunFileReader(path).find(group_id)
    assert group is not None
    rollout = group.detail(no_pieces).rollouts[0]
    assert (len(rollout.tokens), len(rollout.messages)) == (tokens, messages)


def test_a_summary_has_lines_and_no_contents(path: Path) -> None:
    run = RecordedRun(path, RecordLevel.SUMMARY)
    group_id = run.skipped(score=0.25)
    run.close()
    group = RunFileReader(path).find(group_id)
    assert group is not None
    assert (group.row.scores, group.row.has_content) == ((0.25, 1.25), False)


def test_pages_go_back_in_order_of_ending_and_filter(path: Path) -> None:
    run = RecordedRun(path)
    delivered = [run.delivered(score=number / 10) for number in range(10)]
    skipped = [run.skipped(score=5.0) for _ in range(3)]
    run.close()
    reader = RunFileReader(path)
    first = reader.page(ANY, None, 8)
    rest = reader.page(ANY, first.older_than, 8)
    assert [row.group_id for row in (*first.rows, *rest.rows)] == [*reversed(skipped), *reversed(delivered)]
    assert (first.total, rest.older_than) == (13, None)
    low = reader.page(GroupFilter(outcome="delivered", score_to=0.75), None, 50)
    assert [row.group_id for row in low.rows] == list(reversed(delivered[:3]))


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("zebra", [2]),
        ("ZEBRA", [2]),
        ("zeb*", [2]),
        ('"striped zebra"', [2]),
        ('"zebra striped"', []),
        ("striped lion", []),
        ("question", [3, 2, 1]),
        ("NEAR( OR", []),
        ("-- * (", []),
        ('"', []),
    ],
)
def test_words_of_messages_are_found(path: Path, typed: str, found: list[int]) -> None:
    run = RecordedRun(path)
    for text in ("a lion", "a striped zebra", "nothing"):
        run.skipped(text=text)
    run.close()
    page = RunFileReader(path).page(GroupFilter(search=typed), None, 10)
    assert ([row.group_id for row in page.rows], page.total) == (found, len(found))


def test_found_groups_come_in_pages(path: Path) -> None:
    run = RecordedRun(path)
    ids = [run.skipped(text="zebra") if number % 2 else run.delivered(text="zebra") for number in range(7)]
    run.close()
    reader = RunFileReader(path)
    wanted = GroupFilter(search="zebra")
    seen: list[int] = []
    older_than = None
    while True:
        page = reader.page(wanted, older_than, 2)
        seen += [row.group_id for row in page.rows]
        if (older_than := page.older_than) is None:
            break
    assert sorted(seen) == sorted(ids)
    assert page.total == 7


def test_a_closed_file_is_whole_without_its_neighbours(path: Path, tmp_path: Path) -> None:
    run = RecordedRun(path)
    run.delivered()
    run.close()
    assert not path.with_name("run.db-wal").exists()
    shutil.copy(path, tmp_path / "copy.db")
    assert RunFileReader(tmp_path / "copy.db").extent().place == 1


def test_only_the_owner_may_read_it(path: Path) -> None:
    RecordedRun(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_run_file_is_refused_with_a_reason(path: Path, tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="there is no run file"):
        RunFileReader(path)
    path.write_text("hello " * 1000)
    with pytest.raises(RunFileError, match="is no run file"):
        RunFileReader(path)
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (x)")
    with pytest.raises(RunFileError, match="but no run file"):
        RunFileReader(other)


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    RecordedRun(path).close()
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    database.close()
    with pytest.raises(RunFileError, match="update"):
        RunFileReader(path)
    run = RecordedRun(path)
    wait_until(lambda: run.recorder.section().stopped, "stopped")
    assert "update" in run.recorder.section().stopped


def test_an_older_file_is_brought_to_this_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RecordedRun(path).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "ALTER TABLE lives ADD COLUMN host TEXT"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    database = open_for_writing(path)
    assert database.execute("SELECT host FROM lives").fetchall() == [(None,)]
    assert database.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    database.close()


def test_text_that_no_encoding_takes_is_recorded(path: Path) -> None:
    run = RecordedRun(path)
    group_id = run.skipped(text="half a pair \ud800 and \x00 nul")
    run.started()
    run.close()
    group = RunFileReader(path).find(group_id)
    assert group is not None
    assert "half a pair" in str(group.detail(no_pieces).rollouts[0].messages)
    assert os.path.getsize(path) > 0
