"""Writes what happens in a run into its run file, a batch a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TypeAlias

import pydantic_core

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import EventBase, GroupEnqueued, RunStarted
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.allowance import Allowance
from atropos_tui.monitor.group_store import with_scores_of_content
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.packed_content import PackedRollout, pack
from atropos_tui.monitor.run_file.compression import Compressor
from atropos_tui.monitor.run_file.event_lines import write_events
from atropos_tui.monitor.run_file.group_conditions import stored_finishes
from atropos_tui.monitor.run_file.retention import Retention, count_dropped
from atropos_tui.monitor.run_file.stored_content import searchable_text, store
from atropos_tui.monitor.skipped_model import LOST_OUTCOMES
from atropos_tui.monitor.snapshot import EndedRow, RunSnapshot
from atropos_tui.monitor.wire import SnapshotEncoder

MAX_PART_CONTENTS = 50_000
BURST_SECONDS = 5.0
# Of one group; what comes after is kept and can be read, but not searched.
SEARCHED_CHARACTERS = 400_000

# Contents whose group has not yet been enqueued or ended; the next event of the group is on its way.
_MAX_UNSETTLED = 64


class RecordLevel(StrEnum):
    """How much is recorded: contents whole, contents without arrays of numbers, no contents, nothing at all."""

    ALL = "all"
    MESSAGES = "messages"
    SUMMARY = "summary"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class EndedEntry:
    """A group that ended: its place in the order of ending, and the event that ended it."""

    place: int
    seq: int
    group: EndedGroup


@dataclass(frozen=True, slots=True)
class Unwritten:
    """So many contents came too fast to be written."""

    contents: int


Entry: TypeAlias = EventBase | GroupContent | EndedEntry | RunSnapshot | Unwritten


class RunFileWriter:
    """One life of a run. Used by one thread. Methods raise sqlite3.Error; what was being written then is not there.

    Contents may take `content_share` of a processor, those of lost groups as much again; the rest are counted only.
    """

    def __init__(
        self, database: sqlite3.Connection, level: RecordLevel, retention: Retention, content_share: float = 1.0
    ) -> None:
        self._database = database
        self._level = level
        self._retention = retention
        self._compressor = Compressor()
        self._allowances = {lost: Allowance(content_share, burst=BURST_SECONDS) for lost in (True, False)}
        self._unsettled: dict[int, GroupContent] = {}
        # The contents of groups that are in the outbox now.
        self._in_outbox: dict[int, int] = {}
        self._parts: dict[bool, _Part] = {}
        self._life: int | None = None
        self.full = False

    def write(self, entries: Sequence[Entry]) -> int:
        """Write these in one transaction; the sequence number of the newest event in it, 0 for none."""
        database = self._database
        events = [entry for entry in entries if isinstance(entry, EventBase)]
        database.execute("BEGIN IMMEDIATE")
        try:
            for entry in entries:
                self._write(entry)
            if events:
                self._write_events(events)
            self.full = not self._retention.make_room(database)
            self._forget_dropped_parts()
        except BaseException:
            if database.in_transaction:  # SQLite has ended it by itself when the disk is full
                database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")
        return events[-1].seq if events else 0

    def begin_life(self, first_seq: int, pid: int, started_at: float) -> None:
        """A worker begins, whose first event will have this number."""
        self._life = self._database.execute(
            "INSERT INTO lives (first_seq, pid, started_at) VALUES (?, ?, ?)", (first_seq, pid, started_at)
        ).lastrowid

    def finish(self) -> None:
        """Leave one file that can be copied alone."""
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _write(self, entry: Entry) -> None:
        match entry:
            case RunStarted():
                self._write_run(entry)
            case GroupEnqueued():
                self._settle(entry.group_id, lost=False, on_the_way=True)
            case GroupContent():
                self._note_content(entry)
            case EndedEntry():
                self._write_group(entry)
            case RunSnapshot():
                body = SnapshotEncoder().encode(entry, {}) or b""
                self._database.execute(
                    "INSERT OR REPLACE INTO keyframes VALUES (?, ?, ?)",
                    (entry.seq, entry.taken_at, self._compressor.compress(body)),
                )
            case Unwritten():
                count_dropped(self._database, "unwritten", entry.contents)

    def _write_events(self, events: Sequence[EventBase]) -> None:
        self._database.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            (events[0].seq, events[-1].seq, len(events), events[-1].wall, write_events(events, self._compressor)),
        )

    def _write_run(self, event: RunStarted) -> None:
        self._database.execute(
            "UPDATE lives SET run_id = ?, environment = ?, file = ?, tokenizer_name = ?, config = ?, versions = ?"
            " WHERE life = ?",
            (
                event.run_id, event.environment, event.file, event.tokenizer_name,
                pydantic_core.to_json(event.config, inf_nan_mode="strings", serialize_unknown=True).decode(),
                json.dumps(event.versions), self._life,
            ),
        )  # fmt: skip

    def _note_content(self, content: GroupContent) -> None:
        self._unsettled[content.group_id] = content
        if len(self._unsettled) > _MAX_UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]

    def _write_group(self, entry: EndedEntry) -> None:
        row, group = entry.group.row, entry.group
        if row.outcome is Outcome.REQUEUED:
            self._unsettled.pop(row.group_id, None)
        content_id, rollouts = self._settle(row.group_id, lost=row.outcome in LOST_OUTCOMES, on_the_way=False)
        if rollouts and not row.scores:
            row = with_scores_of_content(row, rollouts)
        self._database.execute(
            "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (entry.place, row.group_id, entry.seq, content_id, *_columns(row)),
        )
        if group.error or group.traceback or group.body:
            self._database.execute(
                "INSERT INTO faults VALUES (?, ?, ?, ?)", (entry.place, group.error, group.traceback, group.body)
            )

    def _settle(self, group_id: int, *, lost: bool, on_the_way: bool) -> tuple[int | None, tuple[PackedRollout, ...]]:
        """The number of the group's content in the file, and what was just written of it."""
        content = self._unsettled.pop(group_id, None)
        if content is not None and self._level in (RecordLevel.ALL, RecordLevel.MESSAGES):
            if not self._allowances[lost].has_some():
                count_dropped(self._database, "unwritten", 1)
                return None, ()
            with self._allowances[lost].spending():
                rollouts = pack(content)
                content_id = self._write_content(group_id, rollouts, lost)
            if on_the_way:
                self._in_outbox[group_id] = content_id
            return content_id, rollouts
        return (None if on_the_way else self._content_in_outbox(group_id)), ()

    def _content_in_outbox(self, group_id: int) -> int | None:
        if (content_id := self._in_outbox.pop(group_id, None)) is not None:
            return content_id
        # The group may have been written to the outbox in an earlier life.
        found = self._database.execute(
            "SELECT max(content_id) FROM contents WHERE group_id = ?"
            " AND content_id NOT IN (SELECT content_id FROM groups WHERE group_id = ? AND content_id IS NOT NULL)",
            (group_id, group_id),
        ).fetchone()
        return found[0] if found else None

    def _write_content(self, group_id: int, rollouts: tuple[PackedRollout, ...], lost: bool) -> int:
        stored = store(rollouts, self._compressor, with_arrays=self._level is RecordLevel.ALL)
        part = self._open_part(lost)
        content_id = self._database.execute(
            "INSERT INTO contents (group_id, part, text, arrays) VALUES (?, ?, ?, ?)",
            (group_id, part.number, stored.text, stored.arrays),
        ).lastrowid
        assert content_id is not None
        text = searchable_text(rollouts, SEARCHED_CHARACTERS)
        if text:
            self._database.execute(f"INSERT INTO text_{part.number} (rowid, body) VALUES (?, ?)", (content_id, text))
        part.contents += 1
        part.size += stored.size + len(text) // 2  # the index takes about half of what it indexes
        self._database.execute(
            "UPDATE parts SET contents = ?, size = ?, has_arrays = ? WHERE part = ?",
            (part.contents, part.size, self._level is RecordLevel.ALL, part.number),
        )
        return content_id

    def _open_part(self, lost: bool) -> _Part:
        part = self._parts.get(lost)
        if part is None or part.size >= self._retention.part_size or part.contents >= MAX_PART_CONTENTS:
            number = self._database.execute("INSERT INTO parts (lost) VALUES (?)", (lost,)).lastrowid
            assert number is not None
            self._database.execute(f"CREATE VIRTUAL TABLE text_{number} USING fts5(body, content='')")
            part = self._parts[lost] = _Part(number)
        return part

    def _forget_dropped_parts(self) -> None:
        for lost, part in list(self._parts.items()):
            kept = self._database.execute(
                "SELECT has_text AND (has_arrays OR ?) FROM parts WHERE part = ?",
                (self._level is not RecordLevel.ALL, part.number),
            ).fetchone()
            if not kept[0]:
                del self._parts[lost]


@dataclass(slots=True)
class _Part:
    number: int
    contents: int = 0
    size: int = 0


def _columns(row: EndedRow) -> tuple[object, ...]:
    """The columns of `groups` from `at` on."""
    scores = row.scores
    return (
        row.at, str(row.outcome), row.reason, row.split, row.step, row.seconds, row.weight_version,
        fmean(scores) if scores else None, max(scores, default=None), min(scores, default=None),
        json.dumps(scores), json.dumps(row.completion_tokens), row.item, row.error,
        stored_finishes(row.finishes),
    )  # fmt: skip
