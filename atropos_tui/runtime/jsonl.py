"""The file of groups: one JSON object a line, there for other programs the moment it is written."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atropos_tui.errors import UsageError
from atropos_tui.runtime.tolerant_json import to_json


class JsonlWriter:
    """Appends groups to a file of its own. Safe from any thread.

    An existing file is never touched: `groups.jsonl` becomes `groups_1.jsonl`, `groups_2.jsonl` … (`path` says which).
    Raises UsageError when the file cannot be made.
    """

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.Lock()
        wanted = Path(path)
        try:
            wanted.parent.mkdir(parents=True, exist_ok=True)
            self.path, self._file = _create(wanted)
        except OSError as error:
            raise UsageError(
                f"cannot write groups to {wanted}: {error.strerror}",
                "set --env.data_path_to_save_groups to another path",
            ) from error

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def write(self, group: Mapping[str, Any]) -> int:
        """Write one line and return its size in bytes. Raises OSError when the disk is full; leaves no half line."""
        line = to_json(group) + b"\n"
        with self._lock:
            before = self._file.tell()
            try:
                written = self._file.write(line)
                while written < len(line):
                    written += self._file.write(line[written:])
            except OSError:
                self._file.truncate(before)
                self._file.seek(before)
                raise
        return len(line)

    def close(self) -> None:
        """Close the file; more than once is no error."""
        with self._lock:
            self._file.close()


def _create(wanted: Path) -> tuple[Path, Any]:
    """The first free name, and its file, unbuffered: a line is in the system's hands as soon as it is written."""
    for number in itertools.count():
        path = wanted if number == 0 else wanted.with_stem(f"{wanted.stem}_{number}")
        try:
            return path, path.open("xb", buffering=0)
        except FileExistsError:
            continue
    raise AssertionError("unreachable")
