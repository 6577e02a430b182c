"""A share of the time that some work may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Allowance:
    """Lets work go on while it takes no more than `share` of the time; `burst` seconds may be saved up.

    `now` tells the time that passes, `work` the processor time of the calling thread.
    """

    def __init__(
        self,
        share: float,
        burst: float = 0.5,
        now: Callable[[], float] = time.monotonic,
        work: Callable[[], float] = time.thread_time,
    ) -> None:
        self._share = share
        self._burst = burst
        self._now = now
        self._work = work
        self._balance = burst
        self._reckoned_at = now()

    def has_some(self) -> bool:
        now = self._now()
        self._balance = min(self._burst, self._balance + self._share * (now - self._reckoned_at))
        self._reckoned_at = now
        return self._balance > 0

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Takes what the block costs off the balance."""
        began = self._work()
        yield
        self._balance -= self._work() - began
