"""The end of a run file at a glance: the snapshot that was kept last.

It is what a screen shows first. To fold events, pydantic and all event types have to be loaded, which takes longer than
everything else until then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from atropos_tui.monitor.run_file.compression import decompress
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.schema import open_for_reading
from atropos_tui.monitor.snapshot import RecordSection, RunSnapshot
from atropos_tui.monitor.wire import SnapshotMerger


@dataclass(frozen=True, slots=True)
class Glance:
    """`snapshot` is None where none was kept of the newest life. The record goes from `begin` to `end` (Unix seconds),
    its newest event has the number `last_seq`.
    """

    snapshot: RunSnapshot | None
    begin: float
    end: float
    last_seq: int

    @property
    def is_exact(self) -> bool:
        """Whether the snapshot is the end, and not some seconds before it."""
        return self.snapshot is not None and self.snapshot.seq == self.last_seq


def glance(path: Path) -> Glance:
    """Raises RunFileError for a file that is none or that is damaged."""
    with closing(open_for_reading(path)) as database:
        try:
            begin, first_seq = database.execute("SELECT min(started_at), max(first_seq) FROM lives").fetchone()
            newest = database.execute("SELECT last_seq, last_wall FROM events ORDER BY first_seq DESC LIMIT 1")
            last_seq, end = newest.fetchone() or (0, begin or 0.0)
            kept = database.execute(
                "SELECT body FROM keyframes WHERE seq >= ? ORDER BY taken_at DESC LIMIT 1", (first_seq or 0,)
            ).fetchone()
            dropped = dict(database.execute("SELECT kind, count FROM dropped"))
            snapshot = SnapshotMerger().merge(decompress(kept[0])) if kept is not None else None
        except (sqlite3.Error, ValueError) as error:
            raise RunFileError(f"{path} is damaged or of another version: {error}") from error
    if snapshot is not None:
        snapshot = replace(snapshot, record=as_recorded(snapshot.record, path, last_seq, dropped))
    return Glance(snapshot, begin or 0.0, end, last_seq)


def as_recorded(kept: RecordSection, path: Path, seq: int, dropped: Mapping[str, int]) -> RecordSection:
    """How large the record is by now and what is not in it, beside what is known from when it was written."""
    return replace(
        kept,
        path=str(path),
        size=path.stat().st_size,
        seq=seq,
        dropped_arrays=dropped.get("arrays", 0),
        dropped_contents=dropped.get("contents", 0),
        missed_contents=dropped.get("unwritten", 0),
    )
