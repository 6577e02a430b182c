"""Records a run on a thread of its own, so that neither the run nor who watches it ever waits for the disk."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import EventBase
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.retention import Retention, used_bytes
from atropos_tui.monitor.run_file.schema import open_for_writing
from atropos_tui.monitor.run_file.writer import EndedEntry, Entry, RecordLevel, RunFileWriter, Unwritten
from atropos_tui.monitor.snapshot import RecordSection, RunSnapshot

COMMIT_SECONDS = 0.25
CLOSE_SECONDS = 10.0
KEYFRAME_SECONDS = 30.0
DEFAULT_SIZE_LIMIT = 20 << 30
CONTENT_SHARE = 0.2

# A worker that makes more than is written loses contents first: what happened to its groups is small and stays.
MAX_CONTENTS = 128
MAX_ENTRIES = 500_000
# So much is written without waiting for the time to commit.
BATCH_CONTENTS = 16
BATCH_ENTRIES = 5_000

logger = logging.getLogger(__name__)


class Recorder:
    """Takes entries on the monitor thread and writes them on its own.

    When the disk doesn't take them, recording stops for good, `section` says why, and entries are thrown away.
    `ended_before` groups of earlier lives are in the file. Contents may take `content_share` of a processor.
    """

    def __init__(
        self,
        path: Path,
        level: RecordLevel,
        size_limit: int = DEFAULT_SIZE_LIMIT,
        *,
        ended_before: int = 0,
        content_share: float = CONTENT_SHARE,
        opened: Callable[[Path], sqlite3.Connection] = open_for_writing,
    ) -> None:
        self.path = path
        self._level = level
        self._retention = Retention(size_limit)
        self._content_share = content_share
        self._open = opened
        self._waiting: deque[Entry] = deque()
        self._contents_waiting = 0
        self._contents_missed = 0
        self._lock = threading.Lock()
        self._life = (1, 0, 0.0)
        self._wake = threading.Event()
        self._closing = False
        self._stopped = ""
        self._written_seq = 0
        self._written_place = ended_before
        self._size = 0
        self._dropped: dict[str, int] = {}
        self._keyframe_due = 0.0
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self, first_seq: int, pid: int, started_at: float) -> None:
        """Begin to write, as a new life of the run whose first event will have this number."""
        self._life = (first_seq, pid, started_at)
        self._thread.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Write what waits and close the file. Waits for the disk, but not for ever."""
        self._closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def written_place(self) -> int:
        """Groups that ended up to this place are in the file and committed."""
        return self._written_place

    @property
    def contents_waiting(self) -> int:
        """How many contents wait to be written; of more than `MAX_CONTENTS` the further ones are missed."""
        return self._contents_waiting

    def note_event(self, event: EventBase) -> None:
        self._put(event)

    def note_content(self, content: GroupContent) -> None:
        with self._lock:
            if self._contents_waiting >= MAX_CONTENTS:
                self._contents_missed += 1
                return
            self._contents_waiting += 1
        self._put(content)

    def note_ended(self, place: int, seq: int, group: EndedGroup) -> None:
        self._put(EndedEntry(place, seq, group))

    def keyframe_is_due(self, now: float) -> bool:
        """Whether it is time for the next snapshot; says so once. `now` is monotonic seconds."""
        if now < self._keyframe_due:
            return False
        self._keyframe_due = now + KEYFRAME_SECONDS
        return True

    def note_snapshot(self, snapshot: RunSnapshot) -> None:
        self._put(snapshot)

    def section(self) -> RecordSection:
        return RecordSection(
            level=self._level,
            path=str(self.path),
            size=self._size,
            size_limit=self._retention.size_limit,
            seq=self._written_seq,
            dropped_arrays=self._dropped.get("arrays", 0),
            dropped_contents=self._dropped.get("contents", 0),
            missed_contents=self._dropped.get("unwritten", 0),
            stopped=self._stopped,
        )

    def _put(self, entry: Entry) -> None:
        if self._stopped:
            return
        if len(self._waiting) >= MAX_ENTRIES:
            self._stop("the disk is too slow for this run")
            return
        self._waiting.append(entry)
        if self._batch_is_full:
            self._wake.set()

    @property
    def _batch_is_full(self) -> bool:
        return len(self._waiting) >= BATCH_ENTRIES or self._contents_waiting >= BATCH_CONTENTS

    def _run(self) -> None:
        try:
            with closing(self._open(self.path)) as database:
                self._record(database)
        except (RunFileError, sqlite3.Error, OSError) as error:
            self._stop(_in_words(error))
        except Exception as error:
            logger.exception("a fault of the recorder's own")
            self._stop(f"a fault of the recorder: {error!r}")
        finally:
            self._waiting.clear()

    def _record(self, database: sqlite3.Connection) -> None:
        """Write until there is an end to it."""
        writer = RunFileWriter(database, self._level, self._retention, self._content_share)
        writer.begin_life(*self._life)
        while not self._stopped and (self._waiting or not self._closing):
            if not (self._closing or self._batch_is_full):
                self._wake.wait(COMMIT_SECONDS)
            self._wake.clear()
            self._write_batch(writer)
            self._size = used_bytes(database)
            self._dropped = dict(database.execute("SELECT kind, count FROM dropped"))
            if writer.full:
                self._stop(f"the size limit of {self._retention.size_limit} bytes is reached")
        writer.finish()

    def _write_batch(self, writer: RunFileWriter) -> None:
        batch: list[Entry] = [self._waiting.popleft() for _ in range(min(BATCH_ENTRIES, len(self._waiting)))]
        with self._lock:
            missed, self._contents_missed = self._contents_missed, 0
            self._contents_waiting -= sum(isinstance(entry, GroupContent) for entry in batch)
        if missed:
            batch.append(Unwritten(missed))
        if not batch:
            return
        seq = writer.write(batch)
        self._written_seq = seq or self._written_seq
        self._written_place = max(
            (entry.place for entry in batch if isinstance(entry, EndedEntry)), default=self._written_place
        )

    def _stop(self, why: str) -> None:
        self._stopped = why
        logger.error("recording to %s stopped: %s; the run goes on", self.path, why)


def _in_words(error: Exception) -> str:
    code = getattr(error, "sqlite_errorname", "")
    return "the disk is full" if code == "SQLITE_FULL" else f"{error} {f'({code})' if code else ''}".strip()
