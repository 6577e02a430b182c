"""Real processes of the application, found again by a mark in their environment."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

MARK = "ATROPOS_TUI_TEST_MARK"


class MarkedProcesses:
    """All processes that carry one mark: what was started with `environment`, and everything that those started."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TEXTUAL_THEME", "TMUX")}
        return kept | {MARK: self._mark, "TERM": "xterm-256color"}

    def alive(self) -> dict[int, str]:
        """Pid and command line of each that runs."""
        entry = f"{MARK}={self._mark}".encode()
        found: dict[int, str] = {}
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                if entry in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found


def wait_until(holds: Callable[[], object], within: float = 60.0) -> None:
    """Wait for a condition; an AssertionError when it doesn't come about."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "the condition did not come about in time"
        time.sleep(0.05)
