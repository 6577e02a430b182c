"""Takes events and contents from whatever thread they happen on, and returns at once."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import EventBase, LogLine
from atropos_tui.monitor.logs_model import is_error

# What piles up beyond this makes no operator wiser: log lines are then counted only, groups listed without content.
MAX_LOG_LINES = 2_000
MAX_CONTENTS = 256


class Collector:
    """A `Sink` that never blocks its publishers, and a queue for the one thread that drains it.

    Events of groups are never dropped. Log lines that pile up are dropped and counted, errors and others apart, so that
    a flood of chatter hides no error; of contents that pile up the newest stay. `publish` is called by one thread at a
    time, as `EventStream` does; `keep` by any.
    """

    def __init__(self) -> None:
        self._waiting: deque[EventBase | list[GroupContent]] = deque()
        # The newest contents, each in a list of one that is emptied when it makes room or was drained.
        self._contents: deque[list[GroupContent]] = deque()
        self._log_lines_in = {True: 0, False: 0}
        self._log_lines_out = {True: 0, False: 0}
        self._dropped: Counter[str] = Counter()
        self._dropped_lock = threading.Lock()

    def publish(self, event: EventBase) -> None:
        if isinstance(event, LogLine):
            severe = is_error(event.level)
            if self._log_lines_in[severe] - self._log_lines_out[severe] >= MAX_LOG_LINES:
                with self._dropped_lock:
                    self._dropped[event.level] += 1
                return
            self._log_lines_in[severe] += 1
        self._waiting.append(event)

    def keep(self, content: GroupContent) -> None:
        boxed = [content]
        self._contents.append(boxed)
        self._waiting.append(boxed)
        if len(self._contents) > MAX_CONTENTS:
            self._contents.popleft().clear()

    @property
    def waiting(self) -> int:
        """How much has not been drained yet."""
        return len(self._waiting)

    def drain(self, most: int) -> Iterator[EventBase | GroupContent]:
        """What waits, in order, at most `most` of it."""
        for _ in range(min(most, len(self._waiting))):
            taken = self._waiting.popleft()
            if isinstance(taken, LogLine):
                self._log_lines_out[is_error(taken.level)] += 1
            if isinstance(taken, EventBase):
                yield taken
            else:
                yield from taken[:1]
                taken.clear()

    def take_dropped_log_lines(self) -> Counter[str]:
        """How many log lines of each level were dropped since the last call."""
        with self._dropped_lock:
            dropped, self._dropped = self._dropped, Counter()
        return dropped
