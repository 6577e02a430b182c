"""The little HTTP that the endpoints need, on bare ASGI: bounded bodies, answers that know whether they arrived.

A framework's routing and response objects would cost half of the time that a scored group takes altogether.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from pydantic import BaseModel

from atropos_tui.trajectory_api.request_errors import RequestError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
# Called once an answer has been sent, with whether all of it went out to the client.
Settle: TypeAlias = Callable[[bool], None]

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"
HTML = b"text/html; charset=utf-8"
# Answers from this size on are compressed for clients that accept it (as upstream does).
COMPRESS_FROM = 1000
# So many bytes are handed to the connection at once; between two pieces other requests are served.
PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; one with `settle` is watched while it is sent."""

    body: bytes | list[bytes | memoryview] = b""
    status: int = 200
    media_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    settle: Settle | None = None


class Request:
    """One HTTP request. `path` and `method` as in the ASGI scope."""

    __slots__ = ("_body", "_receive", "headers", "method", "path", "query")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self._receive = receive
        self._body: bytes | None = None

    @property
    def accepts_gzip(self) -> bool:
        accepted = self.headers.get(b"accept-encoding", b"").lower()
        return b"gzip" in accepted and b"gzip;q=0" not in accepted.replace(b" ", b"")

    @property
    def query_values(self) -> dict[str, str]:
        return dict(parse_qsl(self.query.decode("latin-1")))

    async def body(self, limit: int) -> bytes:
        """The body as sent. Raises RequestError: 413 when it is larger than `limit`, 400 when the client went away."""
        if self._body is not None:
            return self._body
        announced = self.headers.get(b"content-length", b"")
        if announced.isdigit() and int(announced) > limit:
            raise too_large(limit)
        message = await self._receive()
        chunks = [bytes(message.get("body", b""))]
        size = len(chunks[0])
        while message.get("more_body", False):
            message = await self._receive()
            chunks.append(bytes(message.get("body", b"")))
            size += len(chunks[-1])
            if size > limit:
                raise too_large(limit)
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the client went away before its body was complete")
        self._body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return self._body

    async def encoded_body(self, limit: int) -> tuple[bytes, bool]:
        """The body as sent, and whether that is gzip. Raises RequestError as `body`, and 415 for other encodings."""
        encoding = self.headers.get(b"content-encoding", b"").lower()
        if encoding and encoding != b"identity" and b"gzip" not in encoding:
            raise RequestError(415, f"Content-Encoding {encoding.decode('latin-1')} is unknown", "use gzip or none")
        return await self.body(limit), b"gzip" in encoding

    async def client_is_gone(self) -> bool:
        """Whether the client has closed its connection. The body must have been read."""
        message = asyncio.ensure_future(self._receive())
        await asyncio.sleep(0)
        if message.done():
            return bool(message.result()["type"] == "http.disconnect")
        message.cancel()
        return False


Handler: TypeAlias = Callable[[Request], Awaitable[Answer]]


def too_large(limit: int) -> RequestError:
    return RequestError(
        413, f"the body is larger than {limit:,} bytes", "send fewer groups at a time, or raise --max-body-mb"
    )


def json_answer(model: BaseModel, *, without_nulls: bool = False, status: int = 200) -> Answer:
    return Answer(model.model_dump_json(exclude_none=without_nulls).encode(), status)


def error_answer(error: RequestError) -> Answer:
    headers = ((b"www-authenticate", b"Bearer"),) if error.status == 401 else ()
    return Answer(json.dumps({"detail": error.detail}).encode(), error.status, headers=headers)


def compressed(answer: Answer) -> Answer:
    """A large answer's gzip form."""
    if not isinstance(answer.body, bytes) or len(answer.body) < COMPRESS_FROM:
        return answer
    headers = (*answer.headers, (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))
    return Answer(gzip.compress(answer.body, 1), answer.status, answer.media_type, headers, answer.settle)


async def send_answer(answer: Answer, request: Request, send: Send) -> None:
    """Send an answer; one that must be settled is sent piece by piece and watched until the last byte has left."""
    pieces: list[bytes | memoryview] = [answer.body] if isinstance(answer.body, bytes) else answer.body
    length = sum(map(len, pieces))
    headers = [(b"content-type", answer.media_type), (b"content-length", b"%d" % length), *answer.headers]
    start = {"type": "http.response.start", "status": answer.status, "headers": headers}
    if answer.settle is None:
        await send(start)
        await send({"type": "http.response.body", "body": b"".join(pieces)})
        return
    arrived = False
    try:
        await send(start)
        for piece in _merged(pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        # An empty piece is sent only when all before it has left our buffers (see flushing.py).
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        arrived = not await request.client_is_gone()
        await send({"type": "http.response.body", "body": b""})
    finally:
        answer.settle(arrived)


def _merged(pieces: list[bytes | memoryview]) -> list[bytes]:
    """The same bytes in pieces of about `PIECE` bytes."""
    merged: list[bytes] = []
    run: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        run.append(piece)
        size += len(piece)
        if size >= PIECE:
            merged.append(b"".join(run))
            run, size = [], 0
    return [*merged, b"".join(run)] if run else merged
