"""The application inside somebody else's server (ASGI 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from atropos_tui.trajectory_api.http import Answer, Request, too_large
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.serving.application import Application

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


async def serve_asgi(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer the one request of an HTTP scope."""
    request = Request(scope["method"], scope["path"], scope["query_string"], dict(scope["headers"]))
    answer = application.refusal(request)
    if answer is None:
        try:
            request.body = await _body(request, receive, application.body_limit)
            answer = await application.answer(request)
        except RequestError as error:
            answer = application.refused(error)
    await _send(answer, receive, send)


async def serve_lifespan(receive: Receive, send: Send, close: Callable[[], None]) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            close()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _body(request: Request, receive: Receive, limit: int) -> bytes:
    """Raises RequestError: 413 when it is larger than `limit`, 400 when the client went away."""
    if request.announced_length > limit:
        raise too_large(limit)
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "the client went away before its body was complete")
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
        size += len(chunks[-1])
        if size > limit:
            raise too_large(limit)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _send(answer: Answer, receive: Receive, send: Send) -> None:
    """Send an answer; one that must be settled is sent piece by piece and watched until the server has taken it."""
    length = b"%d" % answer.size
    headers = [(b"content-type", answer.media_type), (b"content-length", length), *answer.headers]
    start = {"type": "http.response.start", "status": answer.status, "headers": headers}
    if answer.settle is None:
        await send(start)
        await send({"type": "http.response.body", "body": b"".join(answer.pieces)})
        return
    arrived = False
    try:
        await send(start)
        for piece in answer.merged_pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        arrived = not await _client_is_gone(receive)
        await send({"type": "http.response.body", "body": b""})
    finally:
        answer.settle(arrived)


async def _client_is_gone(receive: Receive) -> bool:
    message = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    if message.done():
        return bool(message.result()["type"] == "http.disconnect")
    message.cancel()
    return False
