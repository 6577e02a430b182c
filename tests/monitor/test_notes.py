"""Bookmarks and notes beside the record of a run."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.group_filter import parse_terms
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.monitor.notes import MOST_CHARACTERS, Note, Notes
from atropos_tui.monitor.notes_file import notes_beside, notes_of_socket


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return notes_beside(tmp_path / "run.db")


def read(path: Path) -> Notes:
    notes = Notes(path)
    notes.read()
    return notes


def test_what_was_noted_is_read_again_and_the_last_line_of_a_group_counts(path: Path) -> None:
    notes = Notes(path, now=lambda: 1.8e9)
    notes.bookmark(7, True)
    notes.write(7, "  odd\none ")
    notes.write(8, "gone")
    notes.write(8, "")
    again = read(path)
    assert again[7] == Note(bookmarked=True, text="odd\none")
    assert again[8] == again[9] == Note()
    assert path.name == "run.db.notes.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text().splitlines()[0]) == {"group": 7, "bookmarked": True, "note": "", "at": 1.8e9}


def test_two_screens_write_the_same_file_and_see_what_the_other_wrote(path: Path) -> None:
    one, other = Notes(path), Notes(path)
    one.bookmark(1, True)
    other.write(1, "seen by both")
    one.read()
    assert one[1] == Note(bookmarked=True, text="seen by both")


def test_many_writers_lose_nothing(path: Path) -> None:
    def write(first: int) -> None:
        notes = Notes(path)
        for number in range(first, first + 50):
            notes.write(number, f"note {number}")

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    notes = read(path)
    assert all(
        notes[first + number].text == f"note {first + number}" for first in (0, 100, 200) for number in range(50)
    )


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"group": "x", "bookmarked": true, "note": ""}', b'{"group": 3}', b"\xff"]
)
def test_lines_that_are_no_notes_are_left_alone(path: Path, line: bytes) -> None:
    path.write_bytes(line + b"\n")
    notes = Notes(path)
    notes.bookmark(3, True)
    assert read(path)[3].bookmarked
    assert path.read_bytes().startswith(line)


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(path: Path) -> None:
    whole = b'{"group": 3, "bookmarked": true, "note": ""}\n'
    path.write_bytes(whole[:20])
    notes = read(path)
    assert notes[3] == Note()
    path.write_bytes(whole)
    notes.read()
    assert notes[3].bookmarked


def test_a_very_long_note_is_cut(path: Path) -> None:
    Notes(path).write(1, "x" * 10_000)
    assert len(read(path)[1].text) == MOST_CHARACTERS


def test_without_a_file_notes_last_as_long_as_they_are_held() -> None:
    notes = Notes(None)
    notes.bookmark(1, True)
    notes.read()
    assert notes[1].bookmarked


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AtroposError, match=r"cannot write .*gone"):
        Notes(tmp_path / "gone" / "x.jsonl").bookmark(1, True)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("score<0", GroupQuery("score<0", "-time")),
        ("bookmarked score<0", GroupQuery("score<0", "-time", only=(1, 2))),
        ("bookmarked note:ODD", GroupQuery("", "-time", only=(2,))),
        ("-bookmarked -note:odd", GroupQuery("", "-time", but=(1, 2, 3))),
        ("note:nothing", GroupQuery("", "-time", only=())),
    ],
)
def test_the_run_is_asked_for_numbers_of_groups_in_the_place_of_notes(text: str, query: GroupQuery) -> None:
    notes = Notes(None)
    notes.bookmark(1, True)
    notes.bookmark(2, True)
    notes.write(2, "An odd one")
    notes.write(3, "odd too")
    assert notes.resolved(parse_terms(text), "-time") == query


def test_the_notes_of_a_socket_lie_beside_its_record_if_that_is_here(tmp_path: Path) -> None:
    socket = tmp_path / "control.sock"
    assert notes_of_socket(str(socket)) is None
    (tmp_path / "worker.json").touch()
    assert notes_of_socket(str(socket)) == tmp_path / "run.db.notes.jsonl"
    assert notes_of_socket("http://127.0.0.1:7777") is None
