"""Which processes carry a mark in their command line, as the kernel tells it."""

from __future__ import annotations

import contextlib
from pathlib import Path


def marked_processes(mark: str) -> list[int]:
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (directory / "cmdline").read_bytes():
                    found.append(int(directory.name))
    return found
