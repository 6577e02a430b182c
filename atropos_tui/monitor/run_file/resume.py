"""Where a run that is started again in its directory goes on."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from atropos_tui.ledger.events import GroupStarted
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.reader import RunFileReader


@dataclass(frozen=True, slots=True)
class Begun:
    """How many events and ended groups earlier lives of the run have recorded, and the highest number of a group."""

    events: int = 0
    groups: int = 0
    highest_group: int = 0


def begun_in(path: Path) -> Begun:
    """Nothing where there is no run file yet. A file that cannot be read is the recorder's to complain about."""
    if not path.exists():
        return Begun()
    try:
        reader = RunFileReader(path)
    except (RunFileError, sqlite3.Error):
        return Begun()
    try:
        extent = reader.extent()
        started = reader.newest_of("group_started")
        highest = max(reader.highest_group(), started.group_id if isinstance(started, GroupStarted) else 0)
    except RunFileError:
        return Begun()
    finally:
        reader.close()
    return Begun(events=extent.seq, groups=extent.place, highest_group=highest)
