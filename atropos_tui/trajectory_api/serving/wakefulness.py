"""Keeps the event loop from falling asleep for a moment after each request.

A sender that sends one group after the other is back within that moment. To fall asleep and be woken costs as much of
the processor as to look for it all the while, and keeps it waiting for a sixth of what its request takes.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

# In seconds: twice what a sender on the same machine needs for its next request.
_MOMENT: Final = 0.0001


class Wakefulness:
    """Of one loop, to whose thread it belongs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._until = 0.0
        self.is_looking = False

    def stay(self) -> None:
        """From now on for a moment."""
        self._until = time.monotonic() + _MOMENT
        if not self.is_looking:
            self.is_looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """The loop looks for what has come before each call, and does not sleep while there is one to make."""
        self.is_looking = time.monotonic() < self._until
        if self.is_looking:
            self._loop.call_soon(self._look)
