"""Whether the event loop of the author's code turns, and if not, which line holds it."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

BEAT_SECONDS = 0.1
HELD_SECONDS = 1.0
# Less than this is the jitter of a busy machine.
WORTH_SHOWING_SECONDS = 0.2
# The lag shown is the longest of the last seconds, so that who looks a moment later still sees it.
MEMORY_SECONDS = 5.0

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class LoopWatch:
    """The loop beats on its thread, and one other thread observes."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._thread_id = 0
        self._due: float | None = None
        # When a beat came, and how late it was: appended by the loop's thread, dropped by the observer.
        self._beats: deque[tuple[float, float]] = deque(maxlen=1000)
        self._held_by = ""
        self._held_at = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let `loop` beat until `stop`; call it on the loop's thread."""
        self._thread_id = threading.get_ident()
        self._due = self._monotonic()
        self._beat(loop)

    def stop(self) -> None:
        """The loop is done; it is late no more."""
        self._due = None

    def observe(self) -> tuple[float, str]:
        """The lag in seconds, and the line that holds the loop or held it a moment ago; 0.0 and "" while it turns."""
        now = self._monotonic()
        due = self._due
        late_now = max(0.0, now - due) if due is not None else 0.0
        if late_now >= HELD_SECONDS and (line := self._running_line()):
            self._held_by, self._held_at = line, now
        while self._beats and now - self._beats[0][0] > MEMORY_SECONDS:
            self._beats.popleft()
        lag = max(late_now, max((late for _, late in list(self._beats)), default=0.0))
        if lag < HELD_SECONDS or now - self._held_at > MEMORY_SECONDS:
            self._held_by = ""
        return (round(lag, 1) if lag >= WORTH_SHOWING_SECONDS else 0.0), self._held_by

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._due is None:
            return
        now = self._monotonic()
        late = now - self._due
        if late >= WORTH_SHOWING_SECONDS:
            self._beats.append((now, late))
        self._due = now + BEAT_SECONDS
        loop.call_later(BEAT_SECONDS, self._beat, loop)

    def _running_line(self) -> str:
        """Where the author's code is; a line of a library only where no line of the author is on the stack."""
        innermost = sys._current_frames().get(self._thread_id)
        if innermost is None or innermost.f_code.co_name == "select":
            return ""
        frame = next((frame for frame in _outwards(innermost) if _is_authors(frame)), innermost)
        return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_authors(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not (file.startswith((*_LIBRARIES, _PACKAGE, "<frozen")))
