"""The outbox: finished groups on disk until the trajectory API has accepted them.

One SQLite file a run, in WAL mode. `synchronous=NORMAL` leaves out the fsync of each commit: a group is safe against
the death of the process at any moment, and only a power failure can take the newest ones along. Full synchronisation
would cost three quarters of the write rate, for groups that are stale once a machine has rebooted.
The file is locked for one process, so that two workers cannot send the same groups; that also spares the shared memory
that WAL needs otherwise and network file systems do not have.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.runtime.disk_fault import disk_fault
from atropos_tui.runtime.encoding import EncodedGroup

SCHEMA_VERSION = 1
REFUSED_KEPT = 1000

# The body comes last, so that reading the other columns does not walk through its pages.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS groups (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER NOT NULL UNIQUE,
    key TEXT NOT NULL,
    item TEXT NOT NULL,
    rollouts INTEGER NOT NULL,
    step INTEGER NOT NULL,
    wall REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'pending',
    answer_status INTEGER NOT NULL DEFAULT 0,
    answer TEXT NOT NULL DEFAULT '',
    gzipped INTEGER NOT NULL,
    length INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS refused ON groups (place) WHERE status = 'refused';
CREATE TABLE IF NOT EXISTS highest (group_id INTEGER NOT NULL);
INSERT INTO highest SELECT 0 WHERE NOT EXISTS (SELECT * FROM highest);
PRAGMA user_version = {SCHEMA_VERSION};
"""
_COLUMNS = "group_id, key, item, rollouts, step, wall, attempts, gzipped, length, crc, body"


class OutboxInUse(UsageError):  # noqa: N818  what it is
    """Another process has the file."""


class OutboxError(AtroposError):
    """The outbox at `path` cannot be written: the disk is full or broken."""

    def __init__(self, path: Path | None, fault: str, remedy: str) -> None:
        self.path = path
        where = f"the outbox {path}" if path else "the outbox"
        super().__init__(f"{where} cannot be written: {fault}", remedy)
        self.wrong = fault


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A group in the outbox. `step` is the trainer's when it was started, `wall` the Unix time it was written."""

    group_id: int
    key: str
    item: str
    rollouts: int
    step: int
    wall: float
    attempts: int
    body: EncodedGroup


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a group in the outbox is, without its body."""

    group_id: int
    item: str
    rollouts: int
    step: int
    raw_bytes: int
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A group that the trajectory API refused, with the status and the body of its answer."""

    group: OutboxRow
    answer_status: int
    answer: str


class Outbox:
    """Groups that wait for the trajectory API, oldest first. Safe from any thread; methods block on the disk.

    `path` None keeps everything in memory. Writing raises OutboxError when the disk does not take it.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._database = _open(path)
        self._to_remove: list[int] = []
        (self._last_inherited,) = self._database.execute("SELECT coalesce(max(place), 0) FROM groups").fetchone()
        self._pending: dict[int, float] = dict(
            self._database.execute("SELECT group_id, wall FROM groups WHERE status = 'pending' ORDER BY place")
        )

    def add(
        self, group_id: int, *, key: str, item: str, rollouts: int, step: int, wall: float, body: EncodedGroup
    ) -> None:
        """Write a group. It survives the process from here on."""
        with self._writing() as database:
            database.execute(
                f"INSERT INTO groups ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
                (group_id, key, item, rollouts, step, wall, body.gzipped, body.length, body.crc, body.opened),
            )
            database.execute("UPDATE highest SET group_id = max(group_id, ?)", (group_id,))
        self._pending[group_id] = wall

    def pending(self, limit: int = 100) -> list[OutboxRow]:
        """The groups that wait, oldest first."""
        with self._lock:
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM groups WHERE status = 'pending' ORDER BY place LIMIT ?", (limit,)
            )
            return [_row(columns) for columns in rows]

    def get(self, group_id: int) -> OutboxRow | None:
        """A group that waits; None if it does not."""
        with self._lock:
            columns = self._database.execute(
                f"SELECT {_COLUMNS} FROM groups WHERE group_id = ? AND status = 'pending'", (group_id,)
            ).fetchone()
        return None if columns is None else _row(columns)

    def inherited(self) -> list[Inherited]:
        """The groups that wait since before this outbox was opened, oldest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT group_id, item, rollouts, step, length + 1, length(body) FROM groups "
                "WHERE status = 'pending' AND place <= ? ORDER BY place",
                (self._last_inherited,),
            )
            return [Inherited(*columns) for columns in rows]

    def refused(self, limit: int = 100) -> list[RefusedRow]:
        """The groups that were refused, newest first."""
        with self._lock:
            rows = self._database.execute(
                f"SELECT {_COLUMNS}, answer_status, answer FROM groups WHERE status = 'refused' "
                "ORDER BY place DESC LIMIT ?",
                (limit,),
            )
            return [RefusedRow(_row(columns[:-2]), *columns[-2:]) for columns in rows]

    def mark_attempt(self, group_id: int) -> None:
        """Count a send that did not arrive."""
        with self._writing() as database:
            database.execute("UPDATE groups SET attempts = attempts + 1 WHERE group_id = ?", (group_id,))

    def mark_delivered(self, group_id: int) -> None:
        """Forget a group that the trajectory API accepted."""
        self._remove(group_id)

    def mark_stale(self, group_id: int) -> None:
        """Forget a group that is too old for the trainer."""
        self._remove(group_id)

    def mark_refused(self, group_id: int, status: int, answer: str) -> None:
        """Keep a group for a look, with the answer; of all refused ones the newest `REFUSED_KEPT`."""
        self._pending.pop(group_id, None)
        with self._writing() as database:
            database.execute(
                "UPDATE groups SET status = 'refused', answer_status = ?, answer = ? WHERE group_id = ?",
                (status, answer, group_id),
            )
            database.execute(
                "DELETE FROM groups WHERE place IN "
                "(SELECT place FROM groups WHERE status = 'refused' ORDER BY place DESC LIMIT -1 OFFSET ?)",
                (REFUSED_KEPT,),
            )

    def depth(self) -> int:
        """How many groups wait. Never blocks."""
        return len(self._pending)

    def oldest_wall(self) -> float | None:
        """When the oldest group that waits was written; None when none does. Never blocks."""
        return next(iter(list(self._pending.values())), None)

    def highest_group_id(self) -> int:
        """The highest id ever written to this file, so that a restarted run can go on behind it; 0 for none."""
        with self._lock:
            (highest,) = self._database.execute("SELECT group_id FROM highest").fetchone()
        return int(highest)

    def note_highest(self, group_id: int) -> None:
        """Let a later process of the run go on behind this number, though no group of it was ever here."""
        with self._writing() as database:
            database.execute("UPDATE highest SET group_id = max(group_id, ?)", (group_id,))

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _remove(self, group_id: int) -> None:
        """The group waits no longer, even if the disk refuses to know it; then it is removed with the next write."""
        self._pending.pop(group_id, None)
        self._to_remove.append(group_id)
        with self._writing():
            pass

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; OutboxError and nothing written if it fails."""
        with self._lock:
            try:
                with self._database:
                    self._database.execute("BEGIN")
                    for group_id in self._to_remove:
                        self._database.execute("DELETE FROM groups WHERE group_id = ?", (group_id,))
                    yield self._database
                self._to_remove.clear()
            except sqlite3.OperationalError as error:
                raise OutboxError(self._path, *disk_fault(self._path, error)) from error


def _row(columns: tuple[object, ...]) -> OutboxRow:
    *about, gzipped, length, crc, body = columns
    return OutboxRow(*about, EncodedGroup(body, bool(gzipped), length, crc))  # type: ignore[arg-type, call-arg]


def _open(path: Path | None) -> sqlite3.Connection:
    """Raises UsageError when the file cannot be opened, is no outbox, or belongs to a process that runs."""
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path or ":memory:", timeout=1.0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise UsageError(f"cannot open the outbox {path}: {error}", "choose another run directory") from error
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA page_size = 16384")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA journal_size_limit = 67108864")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise UsageError(
                f"the outbox {path} has format {version}, this version reads {SCHEMA_VERSION}", "move the file away"
            )
        database.executescript(_SCHEMA)
    except sqlite3.OperationalError as error:
        database.close()
        if "locked" in str(error):
            raise OutboxInUse(f"the outbox {path} is in use by another process", "end that run first") from error
        raise UsageError(f"cannot open the outbox {path}: {error}", "choose another run directory") from error
    except sqlite3.DatabaseError as error:
        database.close()
        raise UsageError(f"{path} is no outbox: {error}", "move the file away") from error
    except UsageError:
        database.close()
        raise
    return database
