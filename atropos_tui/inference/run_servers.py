"""The servers that an environment makes itself, such as a judge: they join the run whose code first calls them."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import WeakSet

from atropos_tui.ledger import EventStream

if TYPE_CHECKING:
    from atropos_tui.inference.pool import ServerPool


class RunServers:
    """Those that joined one run, from any thread. Before the run begins, `stream` may be replaced."""

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        # Not kept alive: an environment may make a manager for each rollout.
        self._joined: WeakSet[ServerPool] = WeakSet()
        self._numbers: dict[tuple[tuple[str, str, str], ...], int] = {}
        self._closed = False
        self._lock = threading.Lock()

    def join(self, pool: ServerPool) -> None:
        """Publish the health of these servers and all requests to them, unless somebody has them watched already.

        Their numbers come after those that others had before. The same servers in another pool have the same numbers.
        """
        with self._lock:
            if self._closed or pool.log.stream is not None:
                return
            configs = [server.config for server in pool.servers]
            same = tuple((config.server_type, config.base_url or "", config.model_name) for config in configs)
            if same not in self._numbers:
                self._numbers[same] = self.stream.number_servers(len(configs))
            self._joined.add(pool)
            pool.log.auxiliary = True
            pool.attach(self.stream, self._numbers[same])

    async def close(self) -> None:
        """The run is over: end probes and connections of those that joined. They may join another run."""
        with self._lock:
            self._closed = True
            pools = list(self._joined)
            self._joined.clear()
        for pool in pools:
            await pool.close()
            pool.log.stream = None


# Of the run for which the running task works; None outside of runs.
current_servers: ContextVar[RunServers | None] = ContextVar("current_servers", default=None)
