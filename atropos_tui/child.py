"""Manners of a process that another one of ours started: say when it is ready, end when the parent ends."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any


def announce_ready(ready_fd: int | None, **facts: Any) -> None:
    """Write one JSON line of facts (`url`, `pid` …) to the inherited descriptor, and close it. None: nobody asked."""
    if ready_fd is None:
        return
    line = json.dumps({"pid": os.getpid(), **facts}) + "\n"
    with os.fdopen(ready_fd, "w", encoding="utf-8") as ready:
        ready.write(line)


def end_with_parent(lifeline_fd: int | None) -> None:
    """Send ourselves SIGTERM when the parent's end of the inherited pipe closes, however the parent ended."""
    if lifeline_fd is None:
        return

    def wait_for_the_end() -> None:
        while os.read(lifeline_fd, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_the_end, name="lifeline", daemon=True).start()
