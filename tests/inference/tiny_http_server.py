"""An HTTP server in a few lines, so that a test decides on every byte of an answer and when the connection ends."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httptools

from tests.ports import hold_port, port_of


@dataclass
class Received:
    """A request, whole."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


# Gives the bytes of an answer; None resets the connection instead.
Handler = Callable[[Received], Awaitable[bytes | None]]


def answer(status: int = 200, body: Any = b"", headers: dict[str, str] | None = None) -> bytes:
    """The bytes of an HTTP answer; a body that is neither bytes nor text is sent as JSON."""
    content_type = "application/json"
    if isinstance(body, str):
        content_type, body = "text/plain", body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = {"content-type": content_type, "content-length": str(len(body)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


class TinyHttpServer:
    """Listens on loopback, on the loop that starts it. `connections` counts those ever made."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._open: set[_Connection] = set()
        self.connections = 0
        self._holding = hold_port()  # also after `stop`
        self.port = port_of(self._holding)

    async def start(self) -> None:
        # Named TCP, or asyncio leaves Nagle's algorithm on and an answer can take 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.new_connection, sock=listener, backlog=1024)

    def new_connection(self) -> asyncio.Protocol:
        return _Connection(self)

    async def stop(self) -> None:
        self._server.close()
        self.drop_connections()
        await self._server.wait_closed()

    def drop_connections(self) -> None:
        for connection in list(self._open):
            connection.abort()

    async def __aenter__(self) -> TinyHttpServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Connection(asyncio.Protocol):
    def __init__(self, server: TinyHttpServer) -> None:
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._request = Received()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        self._server._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server._open.discard(self)
        for task in self._tasks:
            task.cancel()

    def abort(self) -> None:
        self._transport.abort()
        self.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._request = Received(method=self._parser.get_method().decode(), path=url.decode())

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._request.body += body

    def on_message_complete(self) -> None:
        task = asyncio.create_task(self._respond(self._request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond(self, request: Received) -> None:
        reply = await self._server._handler(request)
        if reply is None:
            self._transport.abort()
            return
        self._transport.write(reply)
        if b"connection: close" in reply.split(b"\r\n\r\n")[0]:
            self._transport.close()
