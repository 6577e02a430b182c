"""What a journal's file says after every way in which it may end, and what becomes of damage."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.group import QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.journal.contents import (
    Contents,
    delivered_record,
    entered_record,
    group_record,
    registered_record,
    reset_record,
    started_record,
)
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.journal.records import FILE_HEADER, Buffer
from atropos_tui.trajectory_api.stored_json import StoredJson

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
NAMES = map("{}.journal".format, itertools.count())


def group(number: int, text: bytes = b"{}", key: str = "") -> QueuedGroup:
    return QueuedGroup(number, 0, 4, 12, ScoreSummary(0.5, 0.0, 1.0, 0.5), 1.0, StoredJson.plain(text), key)


def written(path: Path, records: list[list[Buffer]]) -> list[int]:
    """A journal of these records; the places where each ends."""
    log = LogFile(path)
    ends = []
    for record in records:
        log.append(record)
        ends.append(log.size)
    log.close()
    return ends


def read(path: Path) -> tuple[Contents, LogFile]:
    log = LogFile(path)
    return log.contents(), log


def texts(contents: Contents, log: LogFile) -> dict[int, bytes]:
    return {waiting.number: waiting.stored.text() for waiting, _ in contents.waiting_groups(log.file, 10**9)}


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("group"), st.binary(max_size=3000)),
        st.tuples(st.just("deliver"), st.integers(0, 30)),
        st.tuples(st.just("reset"), st.just(0)),
    ),
    max_size=12,
)


def records_of(moves: list[tuple[str, bytes | int]]) -> tuple[list[list[Buffer]], list[dict[int, bytes]]]:
    """The records of these moves, and the groups that wait after each."""
    waiting: dict[int, bytes] = {}
    records, states = [], []
    for number, (what, value) in enumerate(moves, start=1):
        if isinstance(value, bytes):
            waiting = waiting | {number: value}
            records.append(group_record(group(number, value)))
        elif what == "deliver":
            waiting = {other: text for other, text in waiting.items() if other != value}
            records.append(delivered_record([value], number))
        else:
            waiting = {}
            records.append(reset_record())
        states.append(waiting)
    return records, states


@given(moves=MOVES, cut=st.floats(0, 1))
@SHARED
def test_a_file_that_ends_anywhere_says_what_its_whole_records_say(
    tmp_path: Path, moves: list[tuple[str, bytes | int]], cut: float
) -> None:
    """As after SIGKILL in the middle of a write."""
    path = tmp_path / next(NAMES)
    records, states = records_of(moves)
    ends = written(path, records)
    size = int(cut * path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    contents, log = read(path)
    whole = sum(end <= size for end in ends)
    assert texts(contents, log) == (states[whole - 1] if whole else {})
    log.append(group_record(group(100, b"later")))
    log.close()
    again, log = read(path)
    assert texts(again, log)[100] == b"later"
    log.close()
    assert not path.with_name(f"{path.name}.damaged").exists()


@given(moves=MOVES.filter(len), at=st.floats(0, 0.999), flip=st.integers(1, 255))
@SHARED
def test_a_damaged_byte_costs_what_follows_it_and_that_is_put_aside(
    tmp_path: Path, moves: list[tuple[str, bytes | int]], at: float, flip: int
) -> None:
    path = tmp_path / next(NAMES)
    records, states = records_of(moves)
    ends = written(path, records)
    before = path.read_bytes()
    place = len(FILE_HEADER) + int(at * (len(before) - len(FILE_HEADER)))
    path.write_bytes(before[:place] + bytes([before[place] ^ flip]) + before[place + 1 :])
    damaged = path.read_bytes()
    contents, log = read(path)
    log.close()
    whole = sum(end <= place for end in ends)
    assert set(contents.groups) == set(states[whole - 1] if whole else {})
    start = ends[whole - 1] if whole else len(FILE_HEADER)
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged[start:]
    assert path.stat().st_size == start


def test_damage_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.journal"
    written(path, [group_record(group(1, b"x" * 100))])
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with caplog.at_level(logging.ERROR):
        read(path)[1].close()
    assert f"what follows is in {path}.damaged" in caplog.text


def test_the_fold_knows_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    written(path, [
        registered_record(None, 3), started_record(), group_record(group(1, key="a")), group_record(group(2, key="b")),
        entered_record([2]), delivered_record([1], 4),
    ])  # fmt: skip
    contents, log = read(path)
    log.close()
    assert (contents.step, contents.started, contents.last_number) == (4, True, 2)
    assert contents.remembered_keys() == ["a", "b"]
    assert set(contents.groups) == {2}


def test_of_a_record_that_the_disk_does_not_take_nothing_is_left(tmp_path: Path, small_files: None) -> None:
    path = tmp_path / "a.journal"
    log = LogFile(path)
    log.append(group_record(group(1, b"first")))
    size = log.size
    with pytest.raises(OSError, match="File too large"):
        log.append(group_record(group(2, b"x" * 400_000)))
    assert (log.size, path.stat().st_size) == (size, size)
    log.append(group_record(group(3, b"third")))
    log.close()
    contents, log = read(path)
    assert texts(contents, log) == {1: b"first", 3: b"third"}
    log.close()


def test_more_pieces_than_one_system_call_takes_are_written(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    written(path, [[piece for number in range(1, 1500) for piece in group_record(group(number, b"%d" % number))]])
    contents, log = read(path)
    assert texts(contents, log) == {number: b"%d" % number for number in range(1, 1500)}
    log.close()


def test_room_on_the_disk_that_no_record_needed_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    log = LogFile(path)
    log.append(group_record(group(1, b"x" * 100_000)))
    log.close()
    log.close()
    assert path.stat().st_blocks * 512 < path.stat().st_size + 64 * 1024


def test_an_empty_file_becomes_a_journal_and_another_one_is_left_alone(tmp_path: Path) -> None:
    empty, notes = tmp_path / "empty", tmp_path / "notes"
    empty.touch()
    read(empty)[1].close()
    notes.write_text("atropos-tui is nice")
    with pytest.raises(UsageError, match="holds something else"):
        LogFile(notes)
    assert notes.read_text() == "atropos-tui is nice"
