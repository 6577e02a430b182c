"""The HTTP protocol that tells the application when bytes have really left."""

from __future__ import annotations

import asyncio
import socket

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class FlushingProtocol(HttpToolsProtocol):
    """Sends at once, and waits before each piece of an answer until all before it is with the operating system."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        # An answer is two small writes; without this the second would wait 40 ms for the first to be acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
