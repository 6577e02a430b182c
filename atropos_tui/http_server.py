"""Listening sockets and the uvicorn server around them, the same for all HTTP servers of the project."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from atropos_tui.errors import UsageError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def bind_tcp(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises UsageError when the address cannot be had."""
    if not 0 <= port <= 65535:
        raise UsageError(f"{port} is not a port", "give a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, so that asyncio sets TCP_NODELAY; else each answer on a connection that stays open takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", "choose another --port, or end what uses it"
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """`http://host:port` of a bound TCP socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer(uvicorn.Server):
    """A uvicorn server on a socket of ours that tells when it listens and leaves signals to its owner if asked."""

    def __init__(
        self, app: Any, *, on_ready: Callable[[], None] | None = None, handle_signals: bool = True, **options: Any
    ) -> None:
        config: dict[str, Any] = {
            "log_level": "warning", "access_log": False, "lifespan": "on", "ws": "none", "server_header": False,
            "timeout_graceful_shutdown": 2,
        }  # fmt: skip
        super().__init__(uvicorn.Config(app, **(config | options)))
        self._on_ready = on_ready
        self._handle_signals = handle_signals

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and self._on_ready is not None:
            self._on_ready()

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve until `should_exit` is set or, with `handle_signals`, SIGINT or SIGTERM comes; a second one hurries."""
        if not self._handle_signals:
            await self._serve(sockets=[listener])
            return
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            # Not `serve`, which sends itself the signal once more when it has ended, so that the status is not 0.
            await self._serve(sockets=[listener])
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def run_on(self, listener: socket.socket) -> None:
        """Like `serve_on`, in an event loop of its own."""
        asyncio.run(self.serve_on(listener))
