"""Bytes of one connection in, requests out. Knows HTTP (by httptools) and no sockets."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import unquote

import httptools

from atropos_tui.trajectory_api.http import Answer, Request, too_large
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.serving.application import Application

# What is read of a connection at once while heads of requests are awaited.
_INPUT_BYTES: Final = 64 * 1024
_LARGEST_HEAD: Final = 64 * 1024
# Memory for a body is taken when its length is announced, but no more at once; the rest as it comes.
_AT_ONCE: Final = 16 * 1024 * 1024


class MalformedRequestError(RequestError):
    """What came is no HTTP, or more of a head than any client needs; nothing after it can be understood."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request that is complete or refused by its head; then with the answer, and the body is skipped."""

    request: Request
    keep_alive: bool
    refusal: Answer | None = None


class _Part(Enum):
    """Which part of a request comes next, and where it goes."""

    HEAD = auto()
    # Its length is known: straight into its place, past the parser, which would copy it twice.
    MEASURED_BODY = auto()
    CHUNKED_BODY = auto()
    SKIPPED_BODY = auto()


class RequestReader:
    """Reads what `buffer` was filled with. `complete` holds the requests that may be answered, oldest first."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.complete: deque[Received] = deque()
        # Set when a client waits for leave to send its body; whoever gives it clears it.
        self.awaits_continue = False
        # The request that is being read.
        self._request = Request("", "", b"", {})
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._keep_alive = False
        self._body = bytearray()
        self._length = self._filled = 0
        # Bytes of a head, or of what stands between the chunks of a body, that is not complete yet.
        self._head_bytes = 0
        self._input = memoryview(bytearray(_INPUT_BYTES))
        self._begin()

    def buffer(self) -> memoryview:
        """Where the next bytes of the connection belong."""
        if self._part is not _Part.MEASURED_BODY:
            return self._input
        if self._filled == len(self._body):
            larger = bytearray(min(self._length, 2 * len(self._body)))
            larger[: self._filled] = self._body
            self._body = larger
        return memoryview(self._body)[self._filled :]

    def received(self, size: int) -> None:
        """So many bytes are in `buffer`. Raises MalformedRequestError; then the connection is of no more use."""
        if self._part is _Part.MEASURED_BODY:
            self._filled += size
            if self._filled == self._length:
                self._finish(self._body)
                self._begin()
            return
        self._head_bytes += size
        self._feed(self._input[:size])
        if self._head_bytes > _LARGEST_HEAD:
            raise MalformedRequestError(431, f"the request has more than {_LARGEST_HEAD:,} bytes of headers")

    def _begin(self) -> None:
        """Await a request with a new parser: the last one knows nothing of a body that went past it."""
        self._parser = httptools.HttpRequestParser(self)
        self._part = _Part.HEAD
        self._head_bytes = 0

    def _feed(self, data: memoryview) -> None:
        try:
            self._parser.feed_data(data)
            return
        except httptools.HttpParserUpgrade as upgrade:
            # Another protocol was offered; we stay with this one, as servers may.
            rest = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, httptools.HttpParserError):
                raise
            raise MalformedRequestError(400, "Invalid HTTP request received.") from error
        except httptools.HttpParserError as error:
            raise MalformedRequestError(400, "Invalid HTTP request received.") from error
        rest = self._fill_body(rest)
        if self._part is _Part.HEAD:
            self._begin()
            if rest:
                self._feed(rest)

    def _fill_body(self, data: memoryview) -> memoryview:
        """Take what belongs to a measured body that goes past the parser, and give the rest."""
        while data and self._part is _Part.MEASURED_BODY:
            buffer = self.buffer()
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            self.received(size)
            data = data[size:]
        return data

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        request = self._request = self._read_head()
        # What comes behind a chunked body in the form of headers belongs to nothing.
        self._headers = {}
        self._keep_alive = self._parser.should_keep_alive()
        limit = self._application.body_limit
        self._length = request.announced_length
        refusal = self._application.refusal(request)
        if refusal is None and self._length > limit:
            refusal = self._application.refused(too_large(limit))
        expects = request.headers.get(b"expect", b"").lower() == b"100-continue"
        if refusal is not None:
            # A client that was to be told to go on may now send its body or not.
            self._refuse(refusal, keep_alive=self._keep_alive and not expects)
            return
        self.awaits_continue = expects
        self._filled = 0
        self._body = bytearray(min(self._length, _AT_ONCE))
        self._part = _Part.MEASURED_BODY if self._length else _Part.CHUNKED_BODY

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        if self._part is _Part.MEASURED_BODY:
            self._body[self._filled : self._filled + len(body)] = body
            self._filled += len(body)
        elif self._part is _Part.CHUNKED_BODY:
            self._body += body
            if len(self._body) > self._application.body_limit:
                self._refuse(self._application.refused(too_large(self._application.body_limit)), self._keep_alive)

    def on_message_complete(self) -> None:
        if self._part is _Part.MEASURED_BODY and self._filled < self._length:
            # With the offer of another protocol the body is not the parser's.
            return
        if self._part is not _Part.SKIPPED_BODY:
            self._finish(self._body)
        self._part = _Part.HEAD

    def _read_head(self) -> Request:
        url = httptools.parse_url(self._url)
        path = (url.path or b"/").decode("ascii")
        if "%" in path:
            path = unquote(path)
        return Request(self._parser.get_method().decode("ascii"), path, url.query or b"", self._headers)

    def _refuse(self, answer: Answer, keep_alive: bool) -> None:
        self.complete.append(Received(self._request, keep_alive, answer))
        self._body = bytearray()
        self._part = _Part.SKIPPED_BODY

    def _finish(self, body: bytearray) -> None:
        self._request.body = body
        self.awaits_continue = False
        self.complete.append(Received(self._request, self._keep_alive))
