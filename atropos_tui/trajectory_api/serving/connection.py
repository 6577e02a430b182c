"""One client's connection: its requests answered one after the other, and each answer followed until it has left."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, cast

from atropos_tui.trajectory_api.http import TEXT, Answer, Request
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.serving.application import Application
from atropos_tui.trajectory_api.serving.first_step import Rest, first_step
from atropos_tui.trajectory_api.serving.request_reader import MalformedRequestError, Received, RequestReader
from atropos_tui.trajectory_api.serving.wakefulness import Wakefulness

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_BROKEN: Final = Answer(b"Internal Server Error", 500, TEXT)

logger = logging.getLogger(__name__)


class Connection(asyncio.BufferedProtocol):
    """Serves one client. `connections` holds it as long as it is open."""

    def __init__(self, application: Application, connections: set[Connection], wakefulness: Wakefulness) -> None:
        self._application = application
        self._connections = connections
        self._wakefulness = wakefulness
        self._reader = RequestReader(application)
        self._loop = asyncio.get_running_loop()
        self._answering: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._is_lost = False
        # No request is read any more: the client said so, sent what is no HTTP, or the server ends.
        self._is_last = False
        self.last_heard_at = self._loop.time()
        self._left_to_send, self._left_since = 0, 0.0

    @property
    def is_answering(self) -> bool:
        return self._answering is not None

    @property
    def _is_gone(self) -> bool:
        """Whether the client has closed its end."""
        return self._is_lost or self._transport.is_closing()

    def is_stuck(self, patience: float) -> bool:
        """Whether the client has taken nothing of what is sent to it for so many seconds, as far as calls of this tell.

        One that is stopped, or whose machine is gone without a word, would keep the groups of its batch for hours.
        """
        left, now = self._transport.get_write_buffer_size(), self._loop.time()
        if left != self._left_to_send:
            self._left_to_send, self._left_since = left, now
        return left > 0 and now - self._left_since > patience

    def close_soon(self) -> None:
        """Close when the answer that is under way has been sent."""
        self._is_last = True
        if not self.is_answering:
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        self._connections.add(self)
        # Then `pause_writing` and `resume_writing` tell whether all bytes are with the operating system.
        transport.set_write_buffer_limits(high=0)
        # Without this the second part of an answer would wait 40 ms for the first to be acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.discard(self)
        self._is_lost = True
        self._drained.set()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.last_heard_at = self._loop.time()
        if self._is_last:
            return
        try:
            self._reader.received(nbytes)
        except MalformedRequestError as error:
            refusal = self._application.refused(error)
            self._reader.complete.append(Received(Request("", "", b"", {}), keep_alive=False, refusal=refusal))
        if self._answering is None:
            self._answer_all()
            self._wakefulness.stay()
        elif self._reader.complete:
            self._transport.pause_reading()

    def _answer_all(self) -> None:
        """Answer the requests that are there, until one takes longer than this moment."""
        while self._reader.complete and not self._is_last:
            received = self._reader.complete.popleft()
            self._is_last = not received.keep_alive
            outcome: Answer | Rest[Answer]
            outcome = first_step(self._answer(received.request)) if received.refusal is None else received.refusal
            if isinstance(outcome, Rest) or outcome.settle is not None or not self._drained.is_set():
                self._answering = self._loop.create_task(self._answer_slowly(received, outcome))
                return
            self._send(received.request, outcome, outcome.pieces)
        if self._is_last:
            self._transport.close()
        elif self._reader.awaits_continue:
            self._reader.awaits_continue = False
            self._transport.write(_CONTINUE)

    async def _answer(self, request: Request) -> Answer:
        try:
            return await self._application.answer(request)
        except RequestError as error:
            return self._application.refused(error)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            self._is_last = True
            return _BROKEN

    async def _answer_slowly(self, received: Received, outcome: Answer | Rest[Answer]) -> None:
        try:
            answer = await outcome if isinstance(outcome, Rest) else outcome
            if answer.settle is None:
                await self._drained.wait()
                self._send(received.request, answer, answer.pieces)
            else:
                await self._send_watched(received.request, answer)
        except Exception:
            # Half an answer may be out: nothing that could follow would be understood.
            logger.exception("the answer to %s %s failed", received.request.method, received.request.path)
            self._transport.abort()
        finally:
            self._answering = None
        self._transport.resume_reading()
        self._answer_all()

    async def _send_watched(self, request: Request, answer: Answer) -> None:
        """Send piece by piece; settles the answer when the last byte is with the operating system, or the client gone.

        A client that leaves after that has read all, or its end is reset when we are through: it cannot be told.
        """
        arrived = False
        try:
            # One round of the loop, in which it learns of a client that has left before.
            await asyncio.sleep(0)
            self._send(request, answer, ())
            for piece in () if request.method == "HEAD" else answer.merged_pieces():
                await self._drained.wait()
                if not self._is_gone:
                    self._transport.write(piece)
            await self._drained.wait()
            arrived = not self._is_gone
        finally:
            assert answer.settle is not None
            answer.settle(arrived)

    def _send(self, request: Request, answer: Answer, body: Iterable[bytes | memoryview]) -> None:
        """Write the head of the answer and this much of its body."""
        if self._is_gone:
            return
        length = b"\r\ncontent-length: %d\r\n" % answer.size
        head = [_status_line(answer.status), _date(int(time.time())), b"content-type: ", answer.media_type, length]
        for name, value in answer.headers:
            head += (name, b": ", value, b"\r\n")
        head.append(b"connection: close\r\n\r\n" if self._is_last else b"\r\n")
        self._transport.write(b"".join(head if request.method == "HEAD" else (*head, *body)))


@lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()
