"""Listens, hands each client to a Connection, and ends them all when it ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from atropos_tui.http_server import SIGNALS
from atropos_tui.trajectory_api.serving.application import Application
from atropos_tui.trajectory_api.serving.connection import Connection
from atropos_tui.trajectory_api.serving.wakefulness import Wakefulness

# Seconds that a silent connection stays open: trainers ask once a step.
KEEP_ALIVE: Final = 75.0
SWEEP_EVERY: Final = 5.0
# Seconds in which a client must take something of its answer: longer than any trainer waits for one.
PATIENCE: Final = 120.0
# Clients that may wait to be let in: hundreds of environments come at once when a trainer starts.
BACKLOG: Final = 2048
# Seconds that answers under way have to get through when the server ends.
_GRACE: Final = 2

logger = logging.getLogger(__name__)


class Server:
    """Serves an application on a bound socket until `stop` is called or a signal comes."""

    def __init__(
        self,
        application: Application,
        *,
        keep_alive: float = KEEP_ALIVE,
        patience: float = PATIENCE,
        sweep_every: float = SWEEP_EVERY,
    ) -> None:
        """All connections are looked at every `sweep_every` seconds.

        One that was silent for `keep_alive` seconds is closed; one whose client took nothing of its answer for
        `patience` seconds is cut off, and its batch put back.
        """
        self._application = application
        self._keep_alive = keep_alive
        self._patience = patience
        self._sweep_every = sweep_every
        self._connections: set[Connection] = set()
        self._ending = asyncio.Event()
        self._hurrying = asyncio.Event()

    def stop(self) -> None:
        """End when the answers under way have been sent; called again, at once."""
        if self._ending.is_set():
            self._hurrying.set()
        self._ending.set()

    async def serve_on(self, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop)
        sweep = loop.create_task(self._end_idle_connections())
        wakefulness = Wakefulness(loop)
        try:
            listening = await loop.create_server(
                lambda: Connection(self._application, self._connections, wakefulness), sock=listener, backlog=BACKLOG
            )
            on_ready()
            await self._ending.wait()
            listening.close()
            await self._end_connections()
        finally:
            sweep.cancel()
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    async def _end_idle_connections(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._sweep_every)
            for connection in list(self._connections):
                if connection.is_stuck(self._patience):
                    logger.warning("a client took nothing of its answer for %.0f s and is cut off", self._patience)
                    connection.abort()
                elif not connection.is_answering and connection.last_heard_at + self._keep_alive < loop.time():
                    connection.close_soon()

    async def _end_connections(self) -> None:
        for connection in list(self._connections):
            connection.close_soon()
        hurry = asyncio.ensure_future(self._hurrying.wait())
        deadline = asyncio.get_running_loop().time() + _GRACE
        while self._connections and not hurry.done() and asyncio.get_running_loop().time() < deadline:
            await asyncio.wait([hurry], timeout=0.02)
        hurry.cancel()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)
