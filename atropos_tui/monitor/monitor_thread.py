"""The thread that watches a run: with a loop of its own it answers even while the author's code holds the other."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from atropos_tui.http_server import HttpServer
from atropos_tui.monitor.alert_command import AlertCommand
from atropos_tui.monitor.control_api import Commands, ControlApi
from atropos_tui.monitor.packed_content import Decode
from atropos_tui.monitor.remote_access import RemoteAccess, TokenGuard
from atropos_tui.monitor.run_view import RunView
from atropos_tui.monitor.unix_socket import bind_unix, remove_socket

DRAIN_SECONDS = 0.1
# The record may take most of it.
CLOSE_SECONDS = 15.0

logger = logging.getLogger(__name__)


class MonitorThread:
    """Drains events, folds the model, serves the control API on a unix socket and, if asked, to others over TCP.

    `readers` are called on the monitor's loop whenever their file descriptor can be read, until one says False.
    """

    def __init__(
        self,
        view: RunView,
        commands: Commands,
        socket_path: Path,
        *,
        decode: Decode,
        read_only: bool = False,
        readers: Mapping[int, Callable[[], bool]] | None = None,
        alert_command: AlertCommand | None = None,
    ) -> None:
        self._view = view
        self._commands = commands
        self._socket_path = socket_path
        self._decode = decode
        self._read_only = read_only
        self._alert_command = alert_command
        self._listener: socket.socket | None = None
        self._remote: RemoteAccess | None = None
        self._readers = dict(readers or {})
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def bind(self) -> None:
        """Take the socket, so that who connects waits until `start`. Raises UsageError when it cannot be had."""
        self._listener = bind_unix(self._socket_path)

    def start(self, remote: RemoteAccess | None = None) -> None:
        """Returns when the socket answers; `remote` answers soon after. Raises UsageError when it cannot be had."""
        if self._listener is None:
            self.bind()
        self._remote = remote
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Fold in what waits, end streams and record, take the socket away. Waits for the thread, but not for ever."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout)
        remove_socket(self._socket_path)

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception as error:
            logger.exception("the monitor ended; the run goes on unseen")
            self._error = error
        finally:
            self._ready.set()

    async def _watch(self) -> None:
        self._loop = asyncio.get_running_loop()
        api = ControlApi(self._view, self._commands, self._decode, read_only=self._read_only)
        app = api.app()
        options: dict[str, Any] = {"handle_signals": False, "lifespan": "off", "log_config": None}
        server = HttpServer(app, on_ready=self._ready.set, **options)
        assert self._listener is not None
        serving = [asyncio.create_task(server.serve_on(self._listener))]
        servers = [server]
        if self._remote is not None:
            servers.append(HttpServer(TokenGuard(app, self._remote.token), **options))
            serving.append(asyncio.create_task(servers[-1].serve_on(self._remote.listener)))
        for descriptor in self._readers:
            self._loop.add_reader(descriptor, self._read, descriptor)
        draining = asyncio.create_task(self._drain())
        telling = asyncio.create_task(self._tell_of_alerts())
        closing = asyncio.create_task(self._closing.wait())
        await asyncio.wait({*serving, draining, closing}, return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        self._view.drain(most=sys.maxsize)
        self._view.record_moment(last=True)
        api.closing.set()
        # Another worker may begin to write as soon as the socket is gone.
        await asyncio.to_thread(self._view.close_record)
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
        if draining.done():
            draining.result()

    def _read(self, descriptor: int) -> None:
        if not self._readers[descriptor]() and self._loop is not None:
            self._loop.remove_reader(descriptor)

    async def _tell_of_alerts(self) -> None:
        if self._alert_command is not None:
            await self._alert_command.follow(lambda: self._view.snapshot().run)

    async def _drain(self) -> None:
        while True:
            more = self._view.drain()
            self._view.watch_loop()
            self._view.record_moment()
            await asyncio.sleep(0 if more else DRAIN_SECONDS)
