"""What is wrong with the disk that does not take a database's pages, and what helps."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


def disk_fault(path: Path | None, error: sqlite3.OperationalError) -> tuple[str, str]:
    """The fault and the remedy, in words; `path` None is a database in memory.

    SQLite says "full" for a disk without room, and only "I/O error" where a quota is used up or the disk is broken.
    """
    code = getattr(error, "sqlite_errorname", "")
    where = f" on {mount_point(path)}" if path is not None else ""
    if code == "SQLITE_FULL":
        return "the disk is full", f"free space{where}"
    if code.startswith("SQLITE_IOERR"):
        return f"the disk does not take it ({error})", f"free space or raise the quota{where}, or mend the disk"
    return str(error), f"free space{where} or mend the disk"


def mount_point(path: Path) -> Path:
    """Where the file system begins that a file is on."""
    place = path.absolute()
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place
