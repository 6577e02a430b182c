"""Finding out whether a server that failed is there. Nothing is asked of a server whose requests succeed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import httpx

from atropos_tui.inference.http_pool import new_http_client

PROBE_INTERVAL = 1.0
PROBE_TIMEOUT = 5.0


class ProbedServer(Protocol):
    """A server as the watch sees it."""

    @property
    def wants_probe(self) -> bool: ...

    async def probe(self, http: httpx.AsyncClient) -> str:
        """Ask cheaply whether the server is there: what is wrong with it, or empty."""


class HealthWatch:
    """Probes servers that are down or in doubt, once a second, until they are known to be up.

    It has a thread and a loop of its own, because requests come from several loops, any of which an author's code may
    hold up or end; the thread lives only as long as a server wants it.
    """

    def __init__(
        self,
        servers: Sequence[ProbedServer],
        report: Callable[[ProbedServer, str], None],
        every_round: Callable[[float], None],
    ) -> None:
        self._servers = servers
        self._report = report
        self._every_round = every_round
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._close_soon: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Begin to watch, unless somebody does."""
        with self._lock:
            if not self._closing and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._watch()), name="inference-health", daemon=True
                )
                self._thread.start()

    async def close(self) -> None:
        """End the probes. A server that fails later is watched again."""
        with self._lock:
            self._closing = True
            thread = self._thread
            self._close_soon()
        if thread is not None:
            await asyncio.to_thread(thread.join)
        self._closing = False

    async def _watch(self) -> None:
        closing = asyncio.Event()
        loop = asyncio.get_running_loop()
        with self._lock:
            self._close_soon = lambda: loop.call_soon_threadsafe(closing.set)
        async with new_http_client(PROBE_TIMEOUT) as http:
            while self._goes_on():
                await asyncio.gather(*(self._probe(server, http) for server in self._servers if server.wants_probe))
                self._every_round(time.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROBE_INTERVAL):
                        await closing.wait()

    async def _probe(self, server: ProbedServer, http: httpx.AsyncClient) -> None:
        try:
            detail = await server.probe(http)
        except Exception as error:  # noqa: BLE001 an author's server class may probe in any way; the watch goes on
            detail = f"its probe failed: {error!r}"
        self._report(server, detail)

    def _goes_on(self) -> bool:
        """Whether there is something to watch; if not, this thread is done and the next start makes a new one."""
        with self._lock:
            goes_on = not self._closing and any(server.wants_probe for server in self._servers)
            if not goes_on:
                self._thread = None
                self._close_soon = lambda: None
            return goes_on
