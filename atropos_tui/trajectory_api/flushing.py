"""The HTTP protocol that tells the application when bytes have really left, and copies none needlessly."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class FlushingProtocol(HttpToolsProtocol):
    """Sends at once, and waits before each piece of an answer until all before it is with the operating system."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)
        # An answer is two small writes; without this the second would wait 40 ms for the first to be acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if not cycle.body:
            cycle.body = _Pieces()
        super().on_body(body)


class _Pieces:
    """Pieces of a body, in place of the bytearray in which uvicorn gathers them: that would copy each twice."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def __iadd__(self, piece: bytes) -> _Pieces:
        self._pieces.append(piece)
        self._size += len(piece)
        return self

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
