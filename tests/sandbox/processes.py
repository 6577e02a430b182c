"""Which processes carry a mark in their command line, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path


def marked_processes(mark: str) -> list[int]:
    numbers = [int(directory.name) for directory in Path("/proc").iterdir() if directory.name.isdigit()]
    return [number for number in numbers if mark in command_line(number)]


def command_line(pid: int) -> str:
    """Empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
