"""HTTP/1.1 connections for hundreds of requests at once, as a transport of httpx.

The pool that httpx brings looks at every connection for every request: with 512 in flight, upstream's default, that is
4.5 ms of CPU a request and more the more there are. Here a request takes an idle connection or opens one. How many may
be in flight is the business of the permits.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections import defaultdict
from typing import Any, TypeAlias
from urllib.request import getproxies

import httptools
import httpx

KEEP_ALIVE = 30.0
CONNECT_TIMEOUT = 10.0

Origin: TypeAlias = tuple[str, str, int]


def new_http_client(seconds: float | None) -> httpx.AsyncClient:
    """A client for the running loop; `seconds` for an answer, None for any time."""
    timeouts = httpx.Timeout(seconds, connect=CONNECT_TIMEOUT)
    # Only httpx's own transport knows the proxies that the environment names.
    transport = None if getproxies() else ConnectionPool()
    return CookielessClient(transport=transport, timeout=timeouts, follow_redirects=True)


class _NoCookies(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None:
        """Leave them."""


class CookielessClient(httpx.AsyncClient):
    """A client that keeps no cookies: to look for them takes httpx a third of the time of a small request."""

    _NONE = _NoCookies()

    @property  # type: ignore[misc]  # nobody sets it
    def cookies(self) -> httpx.Cookies:
        return self._NONE


class ConnectionPool(httpx.AsyncBaseTransport):
    """Idle connections by origin, for one event loop. Bodies are read whole, both ways; but of an answer that goes on
    beyond `longest_answer` bytes the beginning, and its connection is given up."""

    def __init__(self, longest_answer: int | None = None) -> None:
        self._longest_answer = longest_answer
        self._idle: defaultdict[Origin, list[_Connection]] = defaultdict(list)
        self._busy: set[_Connection] = set()
        self._tls: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, timeouts = request.url, request.extensions.get("timeout", {})
        origin = url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)
        message = _head(request) + await request.aread()
        while True:
            connection = self._take_idle(origin)
            reused = connection is not None
            if connection is None:
                connection = await self._connect(origin, timeouts.get("connect"))
            self._busy.add(connection)
            try:
                status, headers, body = await connection.exchange(message, timeouts.get("read"))
            except _ClosedBeforeAnswer:
                # An idle connection may be closed by the server at the moment that it is used again.
                if reused:
                    continue
                raise
            finally:
                self._busy.discard(connection)
            if connection.reusable:
                self._idle[origin].append(connection)
            else:
                connection.close()
            return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body), request=request)

    async def aclose(self) -> None:
        for connection in [*self._busy, *(idle for of_origin in self._idle.values() for idle in of_origin)]:
            connection.close()
        self._idle.clear()

    def _take_idle(self, origin: Origin) -> _Connection | None:
        """The connection used last, so that the others can grow old and be closed."""
        idle = self._idle[origin]
        too_old = time.monotonic() - KEEP_ALIVE
        while idle and (idle[0].closed or idle[0].idle_since < too_old):
            idle.pop(0).close()
        while idle:
            connection = idle.pop()
            if not connection.closed:
                return connection
        return None

    async def _connect(self, origin: Origin, seconds: float | None) -> _Connection:
        scheme, host, port = origin
        loop, tls = asyncio.get_running_loop(), self._tls_context() if scheme == "https" else None
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._longest_answer), host, port, ssl=tls
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {seconds:g} s") from error
        except OSError as error:
            raise httpx.ConnectError(_words(error)) from error
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context()
        return self._tls


class _ClosedBeforeAnswer(httpx.RemoteProtocolError):
    """The server closed the connection without a byte of an answer."""


class _Connection(asyncio.Protocol):
    """One connection, with at most one request on it."""

    def __init__(self, longest_answer: int | None) -> None:
        self.closed = False
        self._longest_answer = longest_answer
        self.idle_since = time.monotonic()
        self.reusable = False
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, list[tuple[bytes, bytes]], bytes]] | None = None

    async def exchange(self, message: bytes, seconds: float | None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Send a request and read its answer: status, headers and body. Whatever goes wrong closes the connection."""
        assert self._transport is not None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._began, self.reusable, self._left = False, False, self._longest_answer
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(message)
        try:
            async with asyncio.timeout(seconds):
                return await self._answer
        except TimeoutError as error:
            self.close()
            raise httpx.ReadTimeout(f"no answer within {seconds:g} s") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._answer is None or self._answer.done():
            return
        if self._ends_with_connection():
            self._finish()
        elif not self._began:
            self._answer.set_exception(_ClosedBeforeAnswer("the connection was closed without an answer"))
        else:
            why = f" ({error})" if error else ""
            self._answer.set_exception(httpx.RemoteProtocolError(f"the answer broke off in the middle{why}"))

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # Nobody asked: the connection is out of step.
            self.close()
            return
        self._began = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._answer.set_exception(httpx.RemoteProtocolError(f"the answer is no HTTP: {error}"))

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0:
                self._finish()

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            # "100 Continue" and its like come before the real answer.
            self._headers, self._body = [], []
            return
        self.reusable = bool(self._parser.should_keep_alive()) and (self._left is None or self._left >= 0)
        self._finish()

    def _finish(self) -> None:
        self.idle_since = time.monotonic()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), self._headers, b"".join(self._body)))

    def _ends_with_connection(self) -> bool:
        """Whether the answer has headers but no length, so that only the closing of the connection ends it."""
        names = {name.lower() for name, _ in self._headers}
        return bool(names) and not names & {b"content-length", b"transfer-encoding"}


def _words(error: OSError) -> str:
    """The fault alone: asyncio words it with the address, which the caller knows."""
    if error.errno is not None and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _head(request: httpx.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [name + b": " + value for name, value in request.headers.raw]
    return b"\r\n".join([*lines, b"", b""])
