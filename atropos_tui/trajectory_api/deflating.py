"""Deflates accepted groups in the background, so that a long queue is small and a batch needs no compressing.

Deflating costs about as much as checking does, so it waits for moments without requests that bring groups, as long as
memory allows.
"""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
import time

from atropos_tui.trajectory_api.group import QueuedGroup

# Up to so many bytes wait for a quiet moment; above, none is waited for; above the limit senders wait.
PATIENCE_BYTES = 256 * 1024 * 1024
LIMIT_BYTES = 512 * 1024 * 1024
# How long after a request it is quiet, in seconds: longer than a sender that sends all the time needs for its next.
QUIET_AFTER = 0.005
# How often it is looked whether it is quiet; each look takes the interpreter from whoever has it.
LOOK_EVERY = 0.02

logger = logging.getLogger(__name__)


class Deflater:
    """One thread, started with the first group. All methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[QueuedGroup, int] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = False
        # Each is written by one thread only, so that none needs a lock.
        self._submitted_bytes = 0
        self._done_bytes = 0
        self._requests = 0
        self._busy_until = 0.0

    @property
    def waiting_bytes(self) -> int:
        return self._submitted_bytes - self._done_bytes

    @property
    def is_full(self) -> bool:
        return self.waiting_bytes > LIMIT_BYTES

    def request_begins(self) -> None:
        """A request comes that brings groups; the deflater stands aside until it ends."""
        self._requests += 1

    def request_ends(self) -> None:
        self._requests -= 1
        self._busy_until = time.monotonic() + QUIET_AFTER

    def submit(self, group: QueuedGroup) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="deflater", daemon=True)
            self._thread.start()
        size = group.stored.size
        self._submitted_bytes += size
        self._waiting.put((group, size))

    def close(self) -> None:
        """Drop what still waits and end the thread."""
        if self._thread is not None:
            self._closing = True
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        freed = 0
        while (waiting := self._waiting.get()) is not None and not self._closing:
            while self._must_wait():
                time.sleep(LOOK_EVERY)
            group, size = waiting
            try:
                deflate(group)
            except OSError as error:
                # It stays where it is; whoever takes it in a batch is told.
                logger.error("the text of group %d cannot be read: %s", group.number, error)
            self._done_bytes += size
            freed += size
            if freed > PATIENCE_BYTES // 4 and self._waiting.empty():
                freed = 0
                _return_free_memory()

    def _must_wait(self) -> bool:
        busy = self._requests > 0 or time.monotonic() < self._busy_until
        return busy and self.waiting_bytes <= PATIENCE_BYTES and not self._closing


def deflate(group: QueuedGroup) -> None:
    """Replace the group's text by its deflated form, unless it left meanwhile. Safe from any thread."""
    stored = group.stored
    if stored.size and not stored.deflated:
        deflated = stored.deflate()
        if group.stored is stored:
            group.stored = deflated


def _return_free_memory() -> None:
    """Give what the texts took back to the operating system; glibc would keep it, as smaller blocks lie between."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
