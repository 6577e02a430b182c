"""Writing to a terminal that may be gone, or may never read again: neither keeps the app from ending."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

_LOOK_SECONDS = 0.1


class TerminalOutput:
    """What the screen's writing thread writes to. What a lost terminal is sent is dropped.

    A connection that froze leaves its terminal there, full: a plain write would wait for it for ever, and the process
    with it. So the terminal is opened once more, for writes that do not wait; the first opening is shared with the
    shell, which must not find it changed.
    """

    def __init__(self, stream: IO[str]) -> None:
        stream.flush()
        self._stream = stream
        self._descriptor = _opened_again(stream.fileno())
        self._lost = False
        self._ends_at = float("inf")

    def write(self, text: str) -> None:
        """Returns when all of it is sent, when the terminal turns out to be gone, or when there is no time left."""
        rest = memoryview(text.encode(errors="replace"))
        while rest and not self._lost:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                self._wait_for_room()
            except OSError:  # a pseudo terminal answers EIO once its other side is closed
                self._lost = True

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._stream.fileno()

    def begin(self) -> None:
        self._lost = False
        self._ends_at = float("inf")

    def end_within(self, seconds: float) -> None:
        """What the terminal has not taken by then is dropped."""
        self._ends_at = time.monotonic() + seconds

    def _wait_for_room(self) -> None:
        if time.monotonic() > self._ends_at:
            self._lost = True
        else:
            select.select([], [self._descriptor], [], _LOOK_SECONDS)


def _opened_again(descriptor: int) -> int:
    """A descriptor of the same terminal that does not block; the same descriptor where it cannot be opened again."""
    if not os.isatty(descriptor):
        return descriptor
    device = os.fstat(descriptor)
    for path in _paths(descriptor):
        with suppress(OSError):
            again = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
            found = os.fstat(again)
            if stat.S_ISCHR(found.st_mode) and found.st_rdev == device.st_rdev:
                return again
            os.close(again)
    return descriptor


def _paths(descriptor: int) -> Iterator[str]:
    """In a container, the name that the terminal has outside is not there, but Linux opens it by its descriptor."""
    with suppress(OSError):
        yield os.ttyname(descriptor)
    yield f"/proc/self/fd/{descriptor}"
