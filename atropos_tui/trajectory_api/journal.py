"""What was accepted and not yet delivered, on disk: an SQLite file that one server writes and reads at its start.

A thread writes; whatever came meanwhile goes into one transaction. A group is in the file before its sender gets a 2xx
and leaves it when its batch has been sent. The file survives the end of the process, however it ends; it is not
flushed to the disk at each step, so the end of the machine may cost it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import orjson

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.group import Place, QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.stored_json import StoredJson
from atropos_tui.trajectory_api.wire import Registration

# So many of the newest idempotency keys are remembered, here and in memory.
KEYS_REMEMBERED = 100_000

_VERSION = 1
_MOST_IN_ONE_TRANSACTION = 256
_SCHEMA = """
    CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE environments (env_id INTEGER PRIMARY KEY, row TEXT NOT NULL);
    CREATE TABLE groups (
        number INTEGER PRIMARY KEY, env_id INTEGER, sequences INTEGER NOT NULL, tokens INTEGER NOT NULL,
        scores TEXT NOT NULL, received_at REAL NOT NULL, key TEXT NOT NULL, queued INTEGER NOT NULL, json BLOB NOT NULL
    );
    CREATE TABLE keys (key TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX keys_by_number ON keys (number);
"""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JournalledRun:
    """What a journal says of the run. `last_number` is that of the newest group, delivered or not."""

    registration: Registration | None = None
    started: bool = False
    step: int = 0
    last_number: int = 0
    environments: list[Environment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Change:
    """What belongs together in the file. With `done` somebody waits for it; without, it is tried until it holds."""

    apply: Callable[[sqlite3.Connection], object]
    done: asyncio.Future[None] | None = None


class Journal:
    """An open journal. All methods but `close` belong to the event loop's thread; none of them blocks it."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises UsageError when it is no journal, is in use, or cannot be written."""
        self.path = path
        self._connection = _open(path)
        self._changes: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._writing = False
        self.trouble = ""

    def run(self) -> JournalledRun:
        values = dict(self._connection.execute("SELECT name, value FROM run"))
        registration = values.get("registration")
        (newest,) = self._connection.execute("SELECT max(number) FROM groups").fetchone()
        rows = self._connection.execute("SELECT row FROM environments ORDER BY env_id")
        return JournalledRun(
            registration=Registration.model_validate_json(registration) if registration else None,
            started=values.get("started") == "1",
            step=int(values.get("step", "0")),
            last_number=max(int(values.get("newest_delivered", "0")), newest or 0),
            environments=[Environment(**orjson.loads(row)) for (row,) in rows],
        )

    def groups(self) -> Iterator[tuple[QueuedGroup, bool]]:
        """The groups that were not delivered, oldest first, and whether each was in the queue (else in a buffer)."""
        columns = "number, env_id, sequences, tokens, scores, received_at, key, queued, json"
        for row in self._connection.execute(f"SELECT {columns} FROM groups ORDER BY number"):
            number, env_id, sequences, tokens, scores, received_at, key, queued, text = row
            summary = ScoreSummary(*orjson.loads(scores))
            stored = StoredJson.unpacked(text).deflate()
            yield QueuedGroup(number, env_id, sequences, tokens, summary, received_at, stored, key), bool(queued)

    def keys(self) -> Iterator[str]:
        """The idempotency keys that were accepted, oldest first."""
        return (key for (key,) in self._connection.execute("SELECT key FROM keys ORDER BY number"))

    async def keep(self, groups: Sequence[QueuedGroup]) -> None:
        """Write accepted groups; returns when they are in the file. Raises RequestError (503) when they cannot be."""
        done = asyncio.get_running_loop().create_future()
        self._put(_Change(partial(_insert_groups, groups=groups), done))
        try:
            await done
        except sqlite3.Error as error:
            fault = f"the journal {self.path} cannot be written: {error}"
            raise RequestError(503, fault, "send again later") from error

    def entered(self, groups: Iterable[QueuedGroup]) -> None:
        """Note that groups are in the queue."""
        numbers = [(group.number,) for group in groups]
        self._later(lambda file: file.executemany("UPDATE groups SET queued = 1 WHERE number = ?", numbers))

    def delivered(self, groups: Iterable[QueuedGroup], step: int) -> None:
        numbers = [(group.number,) for group in groups]
        newest = max(numbers)[0]

        def forget(file: sqlite3.Connection) -> None:
            file.executemany("DELETE FROM groups WHERE number = ?", numbers)
            file.execute("DELETE FROM keys WHERE number <= ?", (newest - KEYS_REMEMBERED,))
            _set(file, step=step, newest_delivered=newest)

        self._later(forget)

    def registered(self, registration: Registration, step: int) -> None:
        text = registration.model_dump_json()
        self._later(lambda file: _set(file, registration=text, step=step))

    def started(self) -> None:
        self._later(lambda file: _set(file, started=1))

    def environment(self, row: Environment) -> None:
        values = (row.env_id, orjson.dumps(asdict(row)).decode())
        self._later(lambda file: file.execute("INSERT OR REPLACE INTO environments VALUES (?, ?)", values))

    def reset(self) -> None:
        def empty(file: sqlite3.Connection) -> None:
            for table in ("run", "environments", "groups", "keys"):
                file.execute(f"DELETE FROM {table}")

        self._later(empty)

    def close(self) -> None:
        """Write what still waits, and close the file."""
        if self._writing:
            self._changes.put(None)
            self._thread.join()
        # Leaves one file that can be moved alone.
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def _later(self, apply: Callable[[sqlite3.Connection], object]) -> None:
        self._put(_Change(apply))

    def _put(self, change: _Change) -> None:
        if not self._writing:
            self._writing = True
            self._thread.start()
        self._changes.put(change)

    def _work(self) -> None:
        unwritten: list[_Change] = []
        ending = False
        while not ending:
            taken = self._next_changes()
            ending = taken[-1] is None
            unwritten += [change for change in taken if change is not None]
            unwritten = self._write(unwritten)

    def _next_changes(self) -> list[_Change | None]:
        """Waits for one change and takes all that are there; None is the last."""
        taken = [self._changes.get()]
        while taken[-1] is not None and len(taken) < _MOST_IN_ONE_TRANSACTION:
            try:
                taken.append(self._changes.get_nowait())
            except queue.Empty:
                break
        return taken

    def _write(self, changes: list[_Change]) -> list[_Change]:
        """Write changes in one transaction; those that must be tried again are returned."""
        try:
            with self._connection:
                self._connection.execute("BEGIN")
                for change in changes:
                    change.apply(self._connection)
        except sqlite3.Error as error:
            self.trouble = str(error)
            logger.error("the journal %s cannot be written: %s", self.path, error)
            _settle(changes, error)
            return [change for change in changes if change.done is None]
        self.trouble = ""
        _settle(changes, None)
        return []


def _insert_groups(file: sqlite3.Connection, groups: Sequence[QueuedGroup]) -> None:
    for group in groups:
        scores = orjson.dumps([group.scores.mean, group.scores.low, group.scores.high, group.scores.spread]).decode()
        about = (group.number, group.env_id, group.sequences, group.tokens, scores, group.received_at, group.key)
        row = (*about, group.place is Place.QUEUED, group.stored.packed())
        file.execute("INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if group.key:
            file.execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", (group.key, group.number))


def _set(file: sqlite3.Connection, **values: str | int) -> None:
    rows = [(name, str(value)) for name, value in values.items()]
    file.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)


def _settle(changes: list[_Change], error: Exception | None) -> None:
    """Tell whoever waits, on the loop where it waits."""
    waiting = [change.done for change in changes if change.done is not None]
    if waiting:
        waiting[0].get_loop().call_soon_threadsafe(_settle_on_loop, waiting, error)


def _settle_on_loop(waiting: list[asyncio.Future[None]], error: Exception | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # Against the end of a process a rollback journal is as good as WAL, and writes each group once, not twice.
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("PRAGMA synchronous = OFF")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == tables == 0:
            version = _VERSION
            connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT")
    except (sqlite3.Error, OSError) as error:
        remedy = "give another --journal PATH, or end the server that uses it" if "locked" in str(error) else ""
        raise UsageError(f"cannot use the journal {path}: {error}", remedy or "give another --journal PATH") from error
    if version != _VERSION:
        connection.close()
        raise UsageError(f"{path} holds something else than a journal of this version", "give another --journal PATH")
    return connection
