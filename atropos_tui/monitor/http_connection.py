"""HTTP/1.1 as far as the control API speaks it, over a unix socket or TCP: small, and loaded in no time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

CONNECT_SECONDS = 5.0
_LONGEST_HEAD = 64 << 10


class BrokenAnswerError(OSError):
    """The other side ended the connection, or speaks no HTTP."""


class Answer(NamedTuple):
    status: int
    body: bytes


class _Head(NamedTuple):
    status: int
    headers: dict[bytes, bytes]

    @property
    def is_chunked(self) -> bool:
        return b"chunked" in self.headers.get(b"transfer-encoding", b"").lower()

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get(b"connection", b"").lower() != b"close"


class HttpConnection:
    """Requests to one address, the path of a unix socket or a URL; a connection is used again while it lasts.

    `silence_limit` is how many seconds the other side may say nothing. Methods raise OSError, of which TimeoutError is
    one.
    """

    def __init__(self, address: str, token: str = "", *, silence_limit: float) -> None:
        self._address = address
        self._url = urlsplit(address) if address.startswith(("http://", "https://")) else None
        self._silence_limit = silence_limit
        self._idle: list[_Wire] = []
        host = self._url.netloc.rpartition("@")[2] if self._url else "worker"
        authorization = f"authorization: Bearer {token}\r\n" if token else ""
        self._headers = f"host: {host}\r\n{authorization}content-length: 0\r\n"

    async def request(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        """One request and its whole answer. `target` is the path with its query; `headers` are further ones, in ASCII.

        The other side closes connections that are idle for long. What finds one closed is asked again, but for what may
        change something: that gets a connection of its own from the beginning.
        """
        further = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        while True:
            reused = method == "GET" and bool(self._idle)
            wire = self._idle.pop() if reused else await self._connect()
            try:
                async with asyncio.timeout(self._silence_limit):
                    head = await wire.ask(method, self._target(target), self._headers + further)
                    body = b"".join([part async for part in wire.body(head)])
            except BrokenAnswerError:
                wire.close()
                if reused:
                    continue
                raise
            except BaseException:
                wire.close()
                raise
            if head.keeps_alive:
                self._idle.append(wire)
            else:
                wire.close()
            return Answer(head.status, body)

    @asynccontextmanager
    async def stream(self, target: str) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """The status and the parts of an answer as they come, on a connection of its own."""
        wire = await self._connect()
        try:
            async with asyncio.timeout(self._silence_limit):
                head = await wire.ask("GET", self._target(target), self._headers)
            yield head.status, wire.body(head, self._silence_limit)
        finally:
            wire.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _target(self, target: str) -> str:
        return (self._url.path.rstrip("/") if self._url else "") + target

    async def _connect(self) -> _Wire:
        url = self._url
        async with asyncio.timeout(CONNECT_SECONDS):
            if url is None:
                return _Wire(*await asyncio.open_unix_connection(self._address, limit=_LONGEST_HEAD))
            secure = url.scheme == "https"
            port = url.port or (443 if secure else 80)
            return _Wire(*await asyncio.open_connection(url.hostname, port, ssl=secure or None, limit=_LONGEST_HEAD))


class _Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def close(self) -> None:
        # A loop that is closing has closed it already.
        with contextlib.suppress(RuntimeError):
            self._writer.close()

    async def ask(self, method: str, target: str, headers: str) -> _Head:
        self._writer.write(f"{method} {target} HTTP/1.1\r\n{headers}\r\n".encode())
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head[:-4].split(b"\r\n")
            fields = (line.split(b":", 1) for line in lines)
            return _Head(int(first.split()[1]), {name.strip().lower(): value.strip() for name, value in fields})
        except (EOFError, ConnectionError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            raise _broken(error) from error

    async def body(self, head: _Head, silence_limit: float | None = None) -> AsyncIterator[bytes]:
        """The parts as they come, each at most `silence_limit` seconds after the one before."""
        try:
            if not head.is_chunked:
                async with asyncio.timeout(silence_limit):
                    yield await self._reader.readexactly(int(head.headers.get(b"content-length", b"0")))
                return
            while True:
                async with asyncio.timeout(silence_limit):
                    size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
                    part = await self._reader.readexactly(size + 2)
                if size == 0:
                    return
                yield part[:-2]
        except (EOFError, ConnectionError, ValueError, asyncio.LimitOverrunError) as error:
            raise _broken(error) from error


def _broken(error: Exception) -> BrokenAnswerError:
    ended = isinstance(error, EOFError | ConnectionError)
    return BrokenAnswerError("it closed the connection" if ended else f"it speaks no HTTP that we know: {error}")
