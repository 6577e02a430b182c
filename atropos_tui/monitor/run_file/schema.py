"""The tables of a run file, their versions, and how to open one.

- `lives`: one row a worker process; a run that is started again in its directory goes on in the same file.
- `events`: all events, in compressed chunks of JSON lines, one a commit; sequence numbers go on from life to life.
- `keyframes`: snapshots of the run every half minute, so that a long run opens without folding a million events.
- `groups`: one row a group that ended, in order of ending. `faults` has at length what broke.
- `contents`: the rollouts of a group, as `text` (messages, scores, finish reasons) and `arrays` (tokens, masks,
  logprobs, advantages). They are written as soon as the group goes to the outbox, so a group may have contents and no
  row yet.
- `parts`: consecutive contents of one kind, which make room together. Each has a full-text index of its own, `text_N`,
  that is dropped as a whole: SQLite's contentless indexes, which keep no second copy of the text, cannot delete rows.
- `dropped`: what made room or was never written, counted by kind.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from atropos_tui.monitor.run_file.place import RunFileError

APPLICATION_ID = 0x41545255  # "ATRU", so that `file` and we can tell a run file from other databases

# One script a version; a file of version N gets the scripts from N on. Never change one that was released.
MIGRATIONS = (
    """
    CREATE TABLE lives (
        life INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL, started_at REAL NOT NULL, pid INTEGER NOT NULL,
        run_id TEXT NOT NULL DEFAULT '', environment TEXT NOT NULL DEFAULT '', file TEXT NOT NULL DEFAULT '',
        tokenizer_name TEXT NOT NULL DEFAULT '', config TEXT NOT NULL DEFAULT '{}', versions TEXT NOT NULL DEFAULT '{}'
    );
    CREATE TABLE events (
        first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, count INTEGER NOT NULL,
        last_wall REAL NOT NULL, body BLOB NOT NULL
    );
    CREATE INDEX events_by_end ON events (last_wall, count, last_seq);
    CREATE TABLE keyframes (seq INTEGER PRIMARY KEY, taken_at REAL NOT NULL, body BLOB NOT NULL);
    CREATE INDEX keyframes_by_time ON keyframes (taken_at);
    CREATE TABLE groups (
        place INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, seq INTEGER NOT NULL, content_id INTEGER,
        at REAL NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, split TEXT NOT NULL, step INTEGER NOT NULL,
        seconds REAL NOT NULL, weight_version INTEGER, mean REAL, best REAL, worst REAL,
        scores TEXT NOT NULL, completion_tokens TEXT NOT NULL, item TEXT NOT NULL, error TEXT NOT NULL
    );
    CREATE INDEX groups_by_number ON groups (group_id, place);
    CREATE INDEX groups_by_outcome ON groups (outcome, place);
    CREATE INDEX groups_by_reason ON groups (reason, place);
    CREATE INDEX groups_by_content ON groups (content_id, outcome, reason, step, mean, place);
    CREATE TABLE faults (
        place INTEGER PRIMARY KEY, error TEXT NOT NULL, traceback TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE TABLE contents (
        content_id INTEGER PRIMARY KEY AUTOINCREMENT, group_id INTEGER NOT NULL, part INTEGER NOT NULL,
        text BLOB, arrays BLOB
    );
    CREATE INDEX contents_by_group ON contents (group_id);
    CREATE INDEX contents_by_part ON contents (part);
    CREATE TABLE parts (
        part INTEGER PRIMARY KEY AUTOINCREMENT, lost INTEGER NOT NULL, contents INTEGER NOT NULL DEFAULT 0,
        size INTEGER NOT NULL DEFAULT 0, has_arrays INTEGER NOT NULL DEFAULT 1, has_text INTEGER NOT NULL DEFAULT 1
    );
    CREATE TABLE dropped (kind TEXT PRIMARY KEY, count INTEGER NOT NULL);
    """,
    "ALTER TABLE groups ADD COLUMN finishes TEXT NOT NULL DEFAULT ''",
)
VERSION = len(MIGRATIONS)
_WITH_FINISHES = 2


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The database, made (0600) or brought to this version. Raises RunFileError, and OSError or sqlite3.Error.

    The caller begins and ends transactions. A transaction survives the death of the process at any moment; only a
    power failure can take the newest ones along.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    database = sqlite3.connect(path, isolation_level=None, timeout=10.0, check_same_thread=False)
    try:
        # Rollouts are a few kilobytes: in pages of 4 KiB half of each would stay empty.
        database.execute("PRAGMA page_size = 16384")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA journal_size_limit = 67108864")
        _migrate(database, path)
    except BaseException:
        database.close()
        raise
    return database


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises RunFileError for anything that is no run file of ours."""
    if not path.is_file():
        raise RunFileError(f"there is no run file {path}", "name the file run.db of a run directory")
    try:
        return _opened(path, "mode=ro")
    except sqlite3.OperationalError:
        # A lone copy on a read-only medium has no place for the shared memory of WAL, and needs none.
        try:
            return _opened(path, "mode=ro&immutable=1")
        except sqlite3.Error as error:
            raise RunFileError(f"cannot read {path}: {error}", "check that it is whole and readable") from error
    except sqlite3.Error as error:
        raise RunFileError(f"{path} is no run file: {error}", "name the file run.db of a run directory") from error


def _opened(path: Path, how: str) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=10.0, check_same_thread=False)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise RunFileError(f"{path} is a database, but no run file", "name the file run.db of a run directory")
        if version > VERSION:
            raise RunFileError(f"{path} has format {version}, this program knows {VERSION}", "update atropos-tui")
        if version < _WITH_FINISHES:
            # A reader cannot bring the file to this version, but may see it so.
            database.execute("CREATE TEMP VIEW groups AS SELECT *, '' AS finishes FROM main.groups")
    except BaseException:
        database.close()
        raise
    return database


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise RunFileError(f"{path} has format {version}, this program knows {VERSION}", "update atropos-tui")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        database.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number};"
            f"PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )
