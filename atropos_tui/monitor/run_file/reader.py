"""Reads a run file, while it is being written or long after. Safe from any thread; methods block on the disk.

They raise RunFileError for a file that is damaged or that cannot be read here.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from atropos_tui.ledger.events import CallFinished, Event
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import CallRow, GroupPage
from atropos_tui.monitor.group_store import GroupFilter, KeptGroup
from atropos_tui.monitor.open_groups import MAX_CALLS, EndedGroup, call_row
from atropos_tui.monitor.run_file.compression import decompress
from atropos_tui.monitor.run_file.event_lines import read_calls, read_events
from atropos_tui.monitor.run_file.glance import as_recorded
from atropos_tui.monitor.run_file.group_conditions import (
    Conditions,
    add_functions,
    add_numbers,
    add_terms,
    order_by,
    read_finishes,
)
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.schema import open_for_reading
from atropos_tui.monitor.run_file.search import match_expression
from atropos_tui.monitor.run_file.stored_content import restore
from atropos_tui.monitor.snapshot import EndedRow, RecordSection, RunSnapshot
from atropos_tui.monitor.wire import SnapshotMerger

T = TypeVar("T")

# How far the wall clock may have been set between the start and the end of a group, in seconds.
_CLOCKS_APART = 5.0
_NO_LIMIT = (1 << 63) - 1
_ROW = """
    SELECT g.place, g.group_id, g.at, g.outcome, g.reason, g.split, g.step, g.seconds, g.weight_version,
           g.scores, g.completion_tokens, g.item, g.error, g.finishes, c.text IS NOT NULL
    FROM groups g LEFT JOIN contents c ON c.content_id = g.content_id
"""


@dataclass(frozen=True, slots=True)
class Life:
    """One worker process of the run; `first_seq` is the number of its first event."""

    first_seq: int
    started_at: float
    pid: int
    run_id: str
    environment: str
    file: str
    tokenizer_name: str
    config: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Extent:
    """The newest event in the file, when it happened (Unix seconds), and the newest place of a group."""

    seq: int
    wall: float
    place: int


class RunFileReader:
    """One connection that cannot write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = open_for_reading(path)
        add_functions(self._database)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def extent(self) -> Extent:
        seq, wall = self._one("SELECT last_seq, last_wall FROM events ORDER BY first_seq DESC LIMIT 1") or (0, 0.0)
        (place,) = self._one("SELECT coalesce(max(place), 0) FROM groups")
        return Extent(seq, wall, place)

    def lives(self) -> list[Life]:
        """Oldest first."""
        found = self._all(
            "SELECT first_seq, started_at, pid, run_id, environment, file, tokenizer_name, config, versions"
            " FROM lives ORDER BY life"
        )
        return [_life(row) for row in found]

    def dropped(self) -> dict[str, int]:
        """What made room or was never written: `arrays`, `contents`, `unwritten`, each a number of groups."""
        return dict(self._all("SELECT kind, count FROM dropped"))

    def record(self) -> RecordSection:
        """How large the record is by now and what is not in it."""
        kept = self.keyframe()
        section = kept.record if kept is not None else RecordSection()
        return as_recorded(section, self.path, self.extent().seq, self.dropped())

    # -- moments

    def events(self, first_seq: int = 0, last_wall: float | None = None) -> Iterator[Event]:
        """Events from a number on, in order, up to a moment (Unix seconds). Reads a chunk at a time."""
        for body in self._chunks(first_seq):
            for event in self._read(_events_of, body):
                if last_wall is not None and event.wall > last_wall:
                    return
                if event.seq >= first_seq:
                    yield event

    def events_of(self, kind: str, first_seq: int = 0) -> Iterator[Event]:
        """Events of one kind from a number on, in order; much faster than reading all."""
        for body in self._chunks(first_seq):
            yield from (event for event in self._read(_events_of, body, kind) if event.seq >= first_seq)

    def newest_of(self, kind: str) -> Event | None:
        """The last event of one kind."""
        before = _NO_LIMIT
        while chunk := self._one(
            "SELECT first_seq, body FROM events WHERE first_seq < ? ORDER BY first_seq DESC LIMIT 1", (before,)
        ):
            before, body = chunk
            if events := self._read(_events_of, body, kind):
                return events[-1]
        return None

    def highest_group(self) -> int:
        """The highest number of a group that ended; 0 where none did."""
        (highest,) = self._one("SELECT coalesce(max(group_id), 0) FROM groups")
        return int(highest)

    def event_after(self, wall: float) -> float | None:
        """When the first event after a moment happened, None after the newest. Times are Unix seconds."""
        found = self._one("SELECT body FROM events WHERE last_wall > ? ORDER BY first_seq LIMIT 1", (wall,))
        times = [event.wall for event in self._read(_events_of, *found)] if found else []
        return next((time for time in times if time > wall), None)

    def event_before(self, wall: float) -> float | None:
        """When the last event before a moment happened, None before the oldest."""
        chunk = "SELECT body FROM events WHERE {} ORDER BY first_seq {} LIMIT 1"
        for where, order in (("last_wall >= ?", ""), ("last_wall < ?", "DESC")):
            found = self._one(chunk.format(where, order), (wall,))
            times = [event.wall for event in self._read(_events_of, *found)] if found else []
            if (before := max((time for time in times if time < wall), default=None)) is not None:
                return before
        return None

    def events_until(self, first_seq: int, wall: float | None = None) -> int:
        """How many events there are from a number on, up to a moment; counted in whole chunks."""
        if wall is None:
            return int(self._one("SELECT coalesce(sum(count), 0) FROM events WHERE last_seq >= ?", (first_seq,))[0])
        condition = "last_wall <= ? AND last_seq >= ?"
        return int(self._one(f"SELECT coalesce(sum(count), 0) FROM events WHERE {condition}", (wall, first_seq))[0])

    def keyframe(self, wall: float | None = None) -> RunSnapshot | None:
        """The newest snapshot that was kept, or the newest not after a moment."""
        condition, values = ("WHERE taken_at <= ?", (wall,)) if wall is not None else ("", ())
        found = self._one(f"SELECT body FROM keyframes {condition} ORDER BY taken_at DESC LIMIT 1", values)
        return None if found is None else self._read(_snapshot_of, found[0])

    # -- groups

    def page(self, wanted: GroupFilter, older_than: int | None, limit: int, not_after: int | None = None) -> GroupPage:
        """Newest first, in order of ending, or as asked for; none that ended after the place `not_after`.

        Groups whose texts are searched (`search`) come in order of writing, and the total then counts those in the
        outbox too. In another order than that of time, `older_than` counts the groups of the pages before.
        """
        if wanted.search:
            expression = match_expression(wanted.search)
            return self._found_page(expression, self._conditions(wanted, not_after), older_than, limit)
        try:
            return self._page(wanted, older_than, limit, not_after)
        except RunFileError as error:
            if "no such table" not in str(error):
                raise
            return self._page(wanted, older_than, limit, not_after)  # a full-text index made room a moment ago

    def _page(self, wanted: GroupFilter, older_than: int | None, limit: int, not_after: int | None) -> GroupPage:
        conditions = self._conditions(wanted, not_after)
        (total,) = self._one(f"SELECT count(*) FROM groups g {conditions.where}", conditions.values)
        offset = 0
        if older_than is not None and wanted.by_time:
            conditions.add("g.place < ?", self._place_of(older_than))
        elif older_than is not None:
            offset = older_than
        rows = self._all(
            f"{_ROW} {conditions.where} {order_by(wanted.order)} LIMIT ? OFFSET ?",
            [*conditions.values, limit + 1, offset],
        )
        page = _page(rows, limit, total)
        return page if wanted.by_time or page.older_than is None else replace(page, older_than=offset + limit)

    def place_until(self, seq: int) -> int:
        """The place of the last group that ended by this event or one before it; 0 before the first."""
        low, high = 0, self.extent().place
        while low < high:
            middle = (low + high + 1) // 2
            # Groups that a killed worker had not written yet leave gaps.
            found = self._one("SELECT seq FROM groups WHERE place >= ? ORDER BY place LIMIT 1", (middle,))
            low, high = (middle, high) if found[0] <= seq else (low, middle - 1)
        return low

    def group_ids(self, wanted: GroupFilter) -> Iterator[int]:
        """The groups of a filter, oldest first."""
        if wanted.search:
            page = self.page(wanted, None, 1_000_000)
            yield from (row.group_id for row in reversed(page.rows))
            return
        conditions = self._conditions(wanted)
        conditions.add("g.place > ?")
        place = 0
        while rows := self._all(
            f"SELECT g.place, g.group_id FROM groups g {conditions.where} ORDER BY g.place LIMIT 500",
            [*conditions.values, place],
        ):
            yield from (group_id for _, group_id in rows)
            place = rows[-1][0]

    def find(self, group_id: int) -> KeptGroup | None:
        """The group in full; the newest of that number."""
        row = self._one(f"{_ROW} WHERE g.group_id = ? ORDER BY g.place DESC LIMIT 1", (group_id,))
        if row is None:
            return None
        place = row[0]
        fault = self._one("SELECT error, traceback, body FROM faults WHERE place = ?", (place,))
        error, traceback, body = fault or ("", "", "")
        content = self._one(
            "SELECT text, arrays FROM contents WHERE content_id = (SELECT content_id FROM groups WHERE place = ?)",
            (place,),
        )
        rollouts = None if content is None or content[0] is None else self._read(restore, *content)
        calls, earlier = self._calls(place, _row(row))
        return KeptGroup(place, EndedGroup(_row(row), error, traceback, body, calls, earlier), rollouts)

    def _calls(self, place: int, row: EndedRow) -> tuple[tuple[CallRow, ...], int]:
        """The newest requests of a group, and how many there were before; from the events between its start and end."""
        (last_seq,) = self._one("SELECT seq FROM groups WHERE place = ?", (place,))
        (at,) = self._one(
            "SELECT coalesce(min(first_seq), 0) FROM events WHERE last_wall >= ?",
            (row.at - row.seconds - _CLOCKS_APART,),
        )
        calls: list[CallRow] = []
        for body in self._chunks(at, last_seq):
            calls += [call_row(event) for event in self._read(_calls_of, body, row.group_id)]
        return tuple(calls[-MAX_CALLS:]), max(0, len(calls) - MAX_CALLS)

    def _conditions(self, wanted: GroupFilter, not_after: int | None = None) -> Conditions:
        conditions = Conditions()
        for condition, value in (
            ("g.place <= ?", not_after),
            ("g.outcome = ?", wanted.outcome or None), ("g.reason = ?", wanted.reason or None),
            ("g.mean >= ?", wanted.score_from), ("g.mean <= ?", wanted.score_to),
            ("g.step >= ?", wanted.step_from), ("g.step <= ?", wanted.step_to),
        ):  # fmt: skip
            if value is not None:
                conditions.add(condition, value)
        parts = self._all("SELECT part FROM parts WHERE has_text ORDER BY part DESC") if wanted.reads_texts else []
        add_terms(conditions, wanted.terms, [part for (part,) in parts])
        add_numbers(conditions, wanted.only, wanted.but)
        return conditions

    def _chunks(self, first_seq: int, last_seq: int = _NO_LIMIT) -> Iterator[bytes]:
        """Compressed events, from the chunk on that has this number, to the one that has that."""
        (at,) = self._one("SELECT coalesce(max(first_seq), 0) FROM events WHERE first_seq <= ?", (first_seq,))
        while chunk := self._one(
            "SELECT first_seq, body FROM events WHERE first_seq BETWEEN ? AND ? ORDER BY first_seq LIMIT 1",
            (at, last_seq),
        ):
            at = chunk[0] + 1
            yield chunk[1]

    def _place_of(self, group_id: int) -> int:
        known = self._one("SELECT max(place) FROM groups WHERE group_id = ?", (group_id,))[0]
        return group_id if known is None else int(known)

    def _found_page(self, expression: str, conditions: Conditions, older_than: int | None, limit: int) -> GroupPage:
        if not expression:
            return GroupPage((), None, 0)
        before = self._content_of(older_than) if older_than is not None else None
        total = 0
        newest: list[tuple[int, Any]] = []
        for (part,) in self._all("SELECT part FROM parts WHERE has_text ORDER BY part DESC"):
            found, rows = self._found_in(part, expression, conditions, before, limit + 1)
            total += found
            newest += rows
        newest.sort(key=lambda found: found[0], reverse=True)
        return _page([row for _, row in newest], limit, total)

    def _found_in(
        self,
        part: int,
        expression: str,
        conditions: Conditions,
        before: int | None,
        limit: int,
    ) -> tuple[int, list[tuple[int, Any]]]:
        """How many groups of a part match, and the newest of them with the numbers of their contents."""
        text = f"text_{part}"
        # CROSS JOIN makes SQLite ask the text first; asking it once for every skipped group takes seconds.
        joined = f"FROM {text} CROSS JOIN groups g ON g.content_id = {text}.rowid"
        where = Conditions([f"{text} MATCH ?", *conditions.parts], [expression, *conditions.values]).where
        values = conditions.values
        try:
            if conditions.parts:
                (total,) = self._one(f"SELECT count(*) {joined} {where}", [expression, *values])
            else:
                (total,) = self._one(f"SELECT count(*) FROM {text} WHERE {text} MATCH ?", [expression])
            below = f"AND {text}.rowid < ?" if before is not None else ""
            rows = self._all(
                f"SELECT {text}.rowid, g.place {joined} {where} {below} ORDER BY {text}.rowid DESC LIMIT ?",
                [expression, *values, *([before] if before is not None else []), limit],
            )
        except RunFileError as error:
            if "no such table" in str(error):  # it made room a moment ago
                return 0, []
            raise
        return total, [(content_id, self._one(f"{_ROW} WHERE g.place = ?", (place,))) for content_id, place in rows]

    def _content_of(self, group_id: int) -> int | None:
        found = self._one("SELECT max(content_id) FROM groups WHERE group_id = ?", (group_id,))
        return found[0] if found else None

    # -- the database

    def _one(self, query: str, values: Sequence[Any] = ()) -> Any:
        with self._reading() as database:
            return database.execute(query, values).fetchone()

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as database:
            return database.execute(query, values).fetchall()

    def _read(self, reader: Callable[..., T], *stored: Any) -> T:
        try:
            return reader(*stored)
        except (ValueError, KeyError, TypeError) as error:
            raise RunFileError(f"{self.path} is damaged or of another version: {error}") from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as error:
                raise RunFileError(f"cannot read {self.path}: {error}") from error


def _life(columns: Any) -> Life:
    first_seq, started_at, pid, run_id, environment, file, tokenizer_name, config, versions = columns
    return Life(
        first_seq, started_at, pid, run_id, environment, file, tokenizer_name, json.loads(config), json.loads(versions)
    )


def _events_of(body: bytes, kind: str = "") -> list[Event]:
    return list(read_events(body, kind))


def _calls_of(body: bytes, group_id: int) -> list[CallFinished]:
    return list(read_calls(body, group_id))


def _snapshot_of(body: bytes) -> RunSnapshot:
    return SnapshotMerger().merge(decompress(body))


def _page(rows: Sequence[Any], limit: int, total: int) -> GroupPage:
    shown = tuple(map(_row, rows[:limit]))
    return GroupPage(rows=shown, older_than=shown[-1].group_id if len(rows) > limit and shown else None, total=total)


def _row(columns: Any) -> EndedRow:
    _, group_id, at, outcome, reason, split, step, seconds, version, scores, tokens, item, error, *rest = columns
    ends, has_text = rest
    return EndedRow(
        group_id=group_id, at=at, outcome=Outcome(outcome), reason=reason, split=split, item=item,
        scores=tuple(json.loads(scores)), completion_tokens=tuple(json.loads(tokens)), step=step, seconds=seconds,
        weight_version=version, has_content=bool(has_text), error=error, finishes=read_finishes(ends),
    )  # fmt: skip
