"""Where the notes on a run are kept: `run.db.notes.jsonl` beside its record."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.monitor.discovery import WORKER_FILE
from atropos_tui.monitor.run_file.place import RUN_FILE

NOTES_SUFFIX = ".notes.jsonl"


def notes_beside(record: Path) -> Path:
    """The file for notes on what a file records."""
    return record.with_name(record.name + NOTES_SUFFIX)


def notes_of_socket(address: str) -> Path | None:
    """The file for notes on the run with this control socket; None where its directory isn't on this machine."""
    if address.startswith(("http://", "https://")):
        return None
    directory = Path(address).parent
    return notes_beside(directory / RUN_FILE) if (directory / WORKER_FILE).is_file() else None
