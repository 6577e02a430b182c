"""No process outlives its test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.end_to_end.marked_processes import MarkedProcesses


@pytest.fixture
def processes() -> Iterator[MarkedProcesses]:
    """None of them outlives its test."""
    marked = MarkedProcesses()
    yield marked
    for pid in marked.alive():
        os.kill(pid, signal.SIGKILL)
