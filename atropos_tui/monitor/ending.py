"""How a worker comes to its end: who asked for it, and what happens if the author's code doesn't let it."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

GRACE_SECONDS = 45.0
HURRY_SECONDS = 5.0
# What tasks, threads and exit handlers may take when the run itself is over.
EXIT_SECONDS = 20.0

# A signal is seen twice, by the C handler and by Python's; a person is not that fast.
_SAME_SIGNAL_SECONDS = 0.3

logger = logging.getLogger(__name__)


class Ending:
    """Takes every wish that the worker should end.

    The first asks the run to end in order, the second to hurry, the third ends the process at once; so does time, when
    the author's code doesn't let the run end. `stop_run` is called with the reason on each of the first two wishes;
    `abandon` must not return. Wishes come on one thread, the monitor's.
    """

    def __init__(
        self, stop_run: Callable[[str], None], abandon: Callable[[], None], grace: float = GRACE_SECONDS
    ) -> None:
        self.asked = threading.Event()
        self._stop_run = stop_run
        self._abandon = abandon
        self._grace = grace
        self._wishes = 0
        self._run_is_over = False
        self._timer: threading.Timer | None = None
        self._timer_lock = threading.Lock()

    def ask(self, why: str, *, hurry: bool = False) -> None:
        """`hurry`: nobody is there to wait for what is in flight."""
        calls = 2 if hurry and not self._wishes else 1
        self._wishes += calls
        if self._wishes > 2 and not hurry:
            self._abandon()
        patience = EXIT_SECONDS if self._run_is_over else self._grace
        self._end_within(patience if self._wishes == 1 else HURRY_SECONDS)
        self.asked.set()
        for _ in range(calls):
            self._stop_run(why)
        logger.info("asked to end: %s", why)

    def run_is_over(self, *, expect_exit: bool) -> None:
        """Nothing is in flight any more. `expect_exit`: what remains must end soon."""
        self._run_is_over = True
        if expect_exit:
            self._end_within(EXIT_SECONDS)

    def _end_within(self, seconds: float) -> None:
        with self._timer_lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(seconds, self._abandon)
            self._timer.daemon = True
            self._timer.start()


class SignalPipe:
    """SIGTERM and SIGINT as something that another thread can read, even while the main thread is deep in C code."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.read_fd, self._write_fd = os.pipe()
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._monotonic = monotonic
        self._last: dict[int, float] = {}

    def install(self) -> None:
        """On the main thread. SIGHUP is ignored: the worker outlives the terminal."""
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        # The environment may take the wakeup descriptor away (asyncio's add_signal_handler does): then this one writes.
        # It must do nothing else, for it may interrupt code that holds any lock.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _frame: self._note(received))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def received(self) -> list[signal.Signals]:
        """What came since the last call, each once."""
        now = self._monotonic()
        new = []
        for number in os.read(self.read_fd, 512):
            if number in (signal.SIGTERM, signal.SIGINT) and now - self._last.get(number, 0.0) > _SAME_SIGNAL_SECONDS:
                self._last[number] = now
                new.append(signal.Signals(number))
        return new

    def _note(self, number: int) -> None:
        try:
            os.write(self._write_fd, bytes([number]))
        except BlockingIOError:
            # Full of signals that nobody has read yet: one more would say nothing new.
            return
