"""How a mode is getting on: one line that renews itself on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TextIO

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import (
    CallFinished,
    EventBase,
    GroupDelivered,
    GroupFailed,
    GroupRejected,
    GroupSkipped,
    StateChanged,
    TrainerStatus,
)

TERMINAL_SECONDS = 0.25
PLAIN_SECONDS = 10.0


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `3:05:00`"""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Progress:
    """A sink of events that counts them and tells. `total` is the number of groups wanted; None where nobody knows."""

    def __init__(self, title: str, out: TextIO, total: int | None = None) -> None:
        self._title = title
        self._out = out
        self._total = total
        self._terminal = out.isatty()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._told_at = 0.0
        self._width = 0
        self._waiting_for = ""
        self._step = 0
        self._done = self._lost = self._calls = 0

    def publish(self, event: EventBase) -> None:
        with self._lock:
            self._count(event)
            every = TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS
            if event.mono >= self._told_at + every or isinstance(event, StateChanged):
                self._told_at = event.mono
                self._tell(event.mono - self._began)

    def keep(self, content: GroupContent) -> None:
        del content

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def close(self) -> None:
        """The last figures, and the end of the line."""
        with self._lock:
            self._tell(self.seconds)
            if self._terminal:
                self._out.write("\n")
                self._out.flush()

    def _count(self, event: EventBase) -> None:
        if isinstance(event, GroupDelivered):
            self._done += 1
        elif isinstance(event, GroupSkipped | GroupRejected | GroupFailed):
            self._lost += 1
        elif isinstance(event, CallFinished):
            self._calls += 1
        elif isinstance(event, StateChanged):
            self._waiting_for = event.waiting_for
        elif isinstance(event, TrainerStatus):
            self._step = event.step

    def line(self, seconds: float) -> str:
        """What is told after so many seconds."""
        parts = [self._title]
        if self._waiting_for:
            parts.append(f"waiting for {self._waiting_for}")
        if self._total is not None:
            parts.append(f"{self._done}/{self._total} groups")
        elif self._done:
            parts.append(f"{self._done} groups")
        if self._lost:
            parts.append(f"{self._lost} without a group")
        if self._step:
            parts.append(f"trainer step {self._step}")
        parts.append(f"{self._calls} requests")
        if self._done and seconds > 0:
            rate = self._done / seconds
            parts.append(f"{rate:.1f} groups/s" if rate >= 1 else f"{60 * rate:.1f} groups/min")
            if self._total is not None and self._total > self._done:
                parts.append(f"{duration((self._total - self._done) / rate)} left")
        parts.append(duration(seconds))
        return ", ".join(parts)

    def _tell(self, seconds: float) -> None:
        line = self.line(seconds)
        if self._terminal:
            # A line that wraps could not be renewed.
            line = line[: shutil.get_terminal_size().columns - 1]
            self._out.write(f"\r{line:<{self._width}}")
            self._width = len(line)
        else:
            self._out.write(line + "\n")
        self._out.flush()
