"""Bookmarks and notes of the people who look at a run, in a file beside its record; the worker never touches it.

`run.db.notes.jsonl` has one line a change, appended, so that several screens can write it at once: the last line of a
group counts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.group_filter import OF_THE_READER, Term
from atropos_tui.monitor.group_query import GroupQuery

MOST_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Note:
    """What someone noted of a group."""

    bookmarked: bool = False
    text: str = ""


_NOTHING = Note()


class Notes:
    """The notes of one run; `path` None keeps them for as long as the screen is open. Methods block on the disk."""

    def __init__(self, path: Path | None, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._now = now
        self._notes: dict[int, Note] = {}
        self._read_bytes = 0

    def __getitem__(self, group_id: int) -> Note:
        return self._notes.get(group_id, _NOTHING)

    def read(self) -> None:
        """Take in what was written since, by this screen or another. Lines that are no notes are left alone.

        Raises AtroposError when the file cannot be read.
        """
        if self.path is None:
            return
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read_bytes += len(line)
                    self._take(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise AtroposError(f"cannot read {self.path}: {error.strerror}", "check its rights") from error

    def bookmark(self, group_id: int, bookmarked: bool) -> None:
        """Raises AtroposError when it cannot be written."""
        self.read()
        self._write(group_id, replace(self[group_id], bookmarked=bookmarked))

    def write(self, group_id: int, text: str) -> None:
        """Replace the note of a group; an empty one is none. Raises AtroposError when it cannot be written."""
        self.read()
        self._write(group_id, replace(self[group_id], text=text.strip()[:MOST_CHARACTERS]))

    def resolved(self, terms: Iterable[Term], order: str) -> GroupQuery:
        """A query with the numbers of groups in the place of terms about notes, which the run knows nothing of."""
        asked: list[str] = []
        only: set[int] | None = None
        but: set[int] = set()
        for term in terms:
            if term.field not in OF_THE_READER:
                asked.append(term.text)
                continue
            found = {number for number, note in self._notes.items() if _fits(note, term)}
            if term.negated:
                but |= found
            else:
                only = found if only is None else only & found
        return GroupQuery(" ".join(asked), order, None if only is None else tuple(sorted(only)), tuple(sorted(but)))

    def _write(self, group_id: int, note: Note) -> None:
        line = {"group": group_id, "bookmarked": note.bookmarked, "note": note.text, "at": round(self._now(), 3)}
        if self.path is not None:
            try:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(descriptor, json.dumps(line).encode() + b"\n")
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise AtroposError(f"cannot write {self.path}: {error.strerror}", "notes need its directory") from error
        self._notes[group_id] = note

    def _take(self, line: bytes) -> None:
        try:
            told = json.loads(line)
            note = Note(told["bookmarked"] is True, str(told["note"]))
            self._notes[int(told["group"])] = note
        except (ValueError, KeyError, TypeError):
            return


def _fits(note: Note, term: Term) -> bool:
    return note.bookmarked if term.field == "bookmarked" else bool(note.text) and term.word in note.text.casefold()
