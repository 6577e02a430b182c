"""What a run file is called, how it is told from other files, and what is raised when it is of no use."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.errors import AtroposError

RUN_FILE = "run.db"


class RunFileError(AtroposError):
    """A run file cannot be opened, read or written."""


def is_run_file(path: Path) -> bool:
    """Whether the file begins like a SQLite database."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
