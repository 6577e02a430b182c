"""What can be told of the machine: versions, the user's own files, and where runs are kept."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from atropos_tui.doctor.finding import Finding, bad, good, limited
from atropos_tui.errors import UsageError
from atropos_tui.monitor.discovery import run_root
from atropos_tui.ui.user_files import read_user_files
from atropos_tui.user_config import config_directory

_PACKAGES = ("atropos-tui", "textual", "transformers", "wandb")
_LITTLE_SPACE = 2e9


def examine_machine() -> Iterator[Finding]:
    yield good(
        "versions", ", ".join([f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in _PACKAGES)])
    )
    yield _sqlite()
    yield _user_files(config_directory())
    yield _run_root(run_root())


def _sqlite() -> Finding:
    with sqlite3.connect(":memory:") as database:
        options = {name for (name,) in database.execute("PRAGMA compile_options")}
    found = f"SQLite {sqlite3.sqlite_version}"
    if "ENABLE_FTS5" in options:
        return good("run files", f"{found} with full-text search")
    return bad("run files", f"{found} without full-text search", "use a Python whose SQLite has FTS5")


def _user_files(directory: Path) -> Finding:
    """The keymap and the themes that the user wrote, read as the screen reads them."""
    try:
        files = read_user_files(directory)
    except UsageError as error:
        return bad("your files", str(error), "the screen does not start until it is mended or taken away")
    if not files.keymap and not files.themes:
        return good("your files", f"no keymap and no themes in {_short(directory)}")
    found = f"{len(files.keymap)} keys and {len(files.themes)} themes in {_short(directory)}"
    return good("your files", found)


def _run_root(root: Path) -> Finding:
    """Runs are made below the root, or below the nearest directory above it that is there."""
    there = next(directory for directory in (root, *root.parents) if directory.exists())
    if not os.access(there, os.W_OK):
        return bad("runs", f"{_short(root)} cannot be written to", "set ATROPOS_TUI_RUNS to a directory of yours")
    free = shutil.disk_usage(there).free
    found = f"in {_short(root)}, {free / 1e9:,.0f} GB free"
    if free < _LITTLE_SPACE:
        return limited("runs", found, "make room, or set ATROPOS_TUI_RUNS: records stop when the disk is full")
    return good("runs", found)


def _short(path: Path) -> str:
    """The path with `~` for the home directory."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
