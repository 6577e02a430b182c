"""A request and its answer, as the endpoints see them; who carries them over a connection is in `serving`.

A framework's routing, request and response objects would cost half of the time that a scored group takes altogether.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl

from pydantic import BaseModel

from atropos_tui.trajectory_api.request_errors import RequestError

# Called once an answer has been sent, with whether all of it went out to the client.
Settle: TypeAlias = Callable[[bool], None]
Body: TypeAlias = bytes | bytearray

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

    @property
    def pieces(self) -> list[bytes | memoryview]:
        return [self.body] if isinstance(self.body, bytes) else self.body

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    def merged_pieces(self) -> list[bytes]:
        """The body in pieces of about `PIECE` bytes."""
        merged: list[bytes] = []
        run: list[bytes | memoryview] = []
        size = 0
        for piece in self.pieces:
            run.append(piece)
            size += len(piece)
            if size >= PIECE:
                merged.append(b"".join(run))
                run, size = [], 0
        return [*merged, b"".join(run)] if run else merged


@dataclass(slots=True, eq=False)
class Request:
    """One HTTP request: its head, and its body once that is complete. Names of headers are in lower case."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: Body = field(default=b"", repr=False)

    @property
    def accepts_gzip(self) -> bool:
        accepted = self.headers.get(b"accept-encoding", b"").lower()
        return b"gzip" in accepted and b"gzip;q=0" not in accepted.replace(b" ", b"")

    @property
    def query_values(self) -> dict[str, str]:
        return dict(parse_qsl(self.query.decode("latin-1")))

    @property
    def is_gzipped(self) -> bool:
        """Whether the body is gzip. Raises RequestError (415) when it has another encoding."""
        encoding = self.headers.get(b"content-encoding", b"").lower()
        if encoding and encoding != b"identity" and b"gzip" not in encoding:
            raise RequestError(415, f"Content-Encoding {encoding.decode('latin-1')} is unknown", "use gzip or none")
        return b"gzip" in encoding

    @property
    def announced_length(self) -> int:
        """The bytes of the body; 0 when the head doesn't tell."""
        length = self.headers.get(b"content-length", b"")
        return int(length) if length.isdigit() else 0


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
