"""What makes room when a run file reaches its size limit: the oldest bulky parts first."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

# After making room there is some, so that not every commit has to make more.
ROOM = 0.05


@dataclass(frozen=True, slots=True)
class Retention:
    """Arrays of numbers go before texts, delivered groups before those that were lost, old before new.

    `size_limit` is in bytes, and 0 stands for none.
    """

    size_limit: int

    @property
    def part_size(self) -> int:
        """How much of compressed contents makes one part, the unit of making room."""
        return max(64 << 10, (self.size_limit or 16 << 30) // 64)

    def make_room(self, database: sqlite3.Connection) -> bool:
        """Drop what must go, in the caller's transaction; False when nothing is left to drop and it is still full."""
        if not self.size_limit or used_bytes(database) <= self.size_limit:
            return True
        while used_bytes(database) > self.size_limit * (1 - ROOM):
            if not _drop_next(database):
                return used_bytes(database) <= self.size_limit
        return True


def used_bytes(database: sqlite3.Connection) -> int:
    """The size of the database without its free pages."""
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (free,) = database.execute("PRAGMA freelist_count").fetchone()
    (page_size,) = database.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * page_size)


def count_dropped(database: sqlite3.Connection, kind: str, count: int) -> None:
    database.execute(
        "INSERT INTO dropped VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET count = count + excluded.count",
        (kind, count),
    )


def _drop_next(database: sqlite3.Connection) -> bool:
    """Whether there was something to drop."""
    for lost, what in ((0, "has_arrays"), (0, "has_text"), (1, "has_arrays"), (1, "has_text")):
        found = database.execute(
            f"SELECT part, contents FROM parts WHERE lost = ? AND {what} ORDER BY part LIMIT 1", (lost,)
        ).fetchone()
        if found is not None:
            _drop(database, *found, arrays_only=what == "has_arrays")
            return True
    return False


def _drop(database: sqlite3.Connection, part: int, contents: int, *, arrays_only: bool) -> None:
    if arrays_only:
        database.execute("UPDATE contents SET arrays = NULL WHERE part = ?", (part,))
        database.execute("UPDATE parts SET has_arrays = 0 WHERE part = ?", (part,))
        count_dropped(database, "arrays", contents)
    else:
        database.execute("DELETE FROM contents WHERE part = ?", (part,))
        database.execute(f"DROP TABLE IF EXISTS text_{part}")
        database.execute("UPDATE parts SET has_text = 0 WHERE part = ?", (part,))
        count_dropped(database, "contents", contents)
