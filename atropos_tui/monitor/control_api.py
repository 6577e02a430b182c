"""The control API of a worker: snapshots, a stream of them, pages of groups, and the operator's commands.

Reading changes nothing. Commands are POSTs of their own and refused in a read-only run. Errors are `{"error": text}`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.asker import ASKER_HEADER, read_asker
from atropos_tui.monitor.group_store import MAX_PAGE, GroupFilter
from atropos_tui.monitor.packed_content import Decode
from atropos_tui.monitor.run_view import RunView
from atropos_tui.monitor.summary import summary_of
from atropos_tui.monitor.wire import SnapshotEncoder, parse_known, read_query, to_json

KEEP_ALIVE_SECONDS = 5.0
MAX_HZ = 30.0
MIN_HZ = 0.1

T = TypeVar("T")


class Commands(Protocol):
    """What an operator may ask of a run. AtroposError when the run can't do it now.

    Those that can be refused by the run itself are awaited, for a second at most: whether it has taken the command, or
    will as soon as the environment's code lets go of its loop. `by` is who asks, for people; empty where nobody said.
    """

    def pause(self, by: str) -> None: ...

    def pause_now(self, by: str) -> None: ...

    def resume(self) -> None: ...

    def step_group(self) -> None: ...

    async def cancel_group(self, group_id: int) -> bool: ...

    async def requeue_group(self, group_id: int) -> bool: ...

    async def evaluate(self) -> bool: ...

    def stop(self) -> None: ...


class ControlApi:
    """The handlers behind the routes; all run on the monitor's loop. `closing` ends the streams."""

    def __init__(self, view: RunView, commands: Commands, decode: Decode, *, read_only: bool) -> None:
        self.closing = asyncio.Event()
        self._view = view
        self._decode = decode
        self._read_only = read_only
        self._encoder = SnapshotEncoder()
        self._commands = commands

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route("/snapshot", self._snapshot),
                Route("/summary", self._summary),
                Route("/stream", self._stream),
                Route("/groups", self._groups),
                Route("/groups/{group_id:int}", self._group),
                Route("/config", self._config),
                Route("/pause", self._pausing(self._commands.pause), methods=["POST"]),
                Route("/pause_now", self._pausing(self._commands.pause_now), methods=["POST"]),
                Route("/resume", self._command(self._commands.resume), methods=["POST"]),
                Route("/step", self._command(self._commands.step_group), methods=["POST"]),
                Route("/groups/{group_id:int}/cancel", self._command(self._commands.cancel_group), methods=["POST"]),
                Route("/groups/{group_id:int}/requeue", self._command(self._commands.requeue_group), methods=["POST"]),
                Route("/evaluate", self._command(self._commands.evaluate), methods=["POST"]),
                Route("/stop", self._command(self._commands.stop), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _http_error, AtroposError: _run_error},
        )

    async def _health(self, request: Request) -> Response:
        run = self._view.snapshot().run
        return JSONResponse({"ok": True, "run_id": run.run_id, "pid": run.pid, "state": run.state})

    async def _snapshot(self, request: Request) -> Response:
        known = _read(request, "known", parse_known, "")
        self._view.drain()
        snapshot = self._view.snapshot()
        body = self._encoder.encode(snapshot, known)
        if body is None:
            body = to_json(
                {"seq": snapshot.seq, "taken_at": snapshot.taken_at, "versions": snapshot.versions, "sections": {}}
            )
        return Response(body, media_type="application/json")

    async def _summary(self, request: Request) -> Response:
        self._view.drain()
        return Response(to_json(summary_of(self._view.snapshot())), media_type="application/json")

    async def _stream(self, request: Request) -> Response:
        known = _read(request, "known", parse_known, "")
        hz = _read(request, "hz", float, "4")
        if not MIN_HZ <= hz <= MAX_HZ:
            raise HTTPException(400, f"hz must be from {MIN_HZ} to {MAX_HZ}")
        return StreamingResponse(self._lines(known, 1.0 / hz), media_type="application/x-ndjson")

    async def _lines(self, known: Mapping[str, int], interval: float) -> AsyncIterator[bytes]:
        silent_since = asyncio.get_running_loop().time()
        while True:
            self._view.drain()
            snapshot = self._view.snapshot()
            line = self._encoder.encode(snapshot, known)
            now = asyncio.get_running_loop().time()
            if line is None and now - silent_since >= KEEP_ALIVE_SECONDS:
                line = b"{}"
            if line is not None:
                yield line + b"\n"
                silent_since = now
            if self.closing.is_set():
                return
            known = snapshot.versions
            # Not wait_for, which before Python 3.12 may swallow a cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await self.closing.wait()

    async def _groups(self, request: Request) -> Response:
        query = request.query_params
        older_than = _read(request, "older_than", int, "") if query.get("older_than") else None
        limit = _read(request, "limit", int, "50")
        if not 1 <= limit <= MAX_PAGE:
            raise HTTPException(400, f"limit must be from 1 to {MAX_PAGE}")
        self._view.drain()
        page = await self._view.groups.page(_read_filter(request), older_than, limit)
        return Response(to_json(page), media_type="application/json")

    async def _group(self, request: Request) -> Response:
        group_id: int = request.path_params["group_id"]
        self._view.drain()
        group = await self._view.groups.find(group_id)
        if group is None:
            raise HTTPException(404, f"group {group_id} has not ended, or is no longer kept")
        body = await asyncio.to_thread(lambda: to_json(group.detail(self._decode)))
        return Response(body, media_type="application/json")

    async def _config(self, request: Request) -> Response:
        self._view.drain()
        return Response(to_json(self._view.config()), media_type="application/json")

    def _command(self, give: Callable[..., Awaitable[bool] | None]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that gives a command, with the parameters of its path. 202 when the run takes it later."""

        async def endpoint(request: Request) -> Response:
            self._refuse_if_read_only()
            taking = give(**request.path_params)
            taken = taking is None or await taking
            return JSONResponse({"ok": True, "taken": taken}, 200 if taken else 202)

        return endpoint

    def _pausing(self, give: Callable[[str], None]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that gives a command which tells the run who asks."""

        async def endpoint(request: Request) -> Response:
            self._refuse_if_read_only()
            give(read_asker(request.headers.get(ASKER_HEADER, "")))
            return JSONResponse({"ok": True, "taken": True})

        return endpoint

    def _refuse_if_read_only(self) -> None:
        if self._read_only:
            raise HTTPException(403, "this run is read-only")


def _read_filter(request: Request) -> GroupFilter:
    query = request.query_params

    def number(name: str, reader: Callable[[str], T]) -> T | None:
        return _read(request, name, reader, "") if query.get(name) else None

    try:
        told = GroupFilter.of(read_query(query))
    except ValueError as error:
        raise HTTPException(400, f"only and but are numbers of groups: {error}") from error
    return replace(
        told,
        outcome=query.get("outcome", ""),
        reason=query.get("reason", ""),
        search=query.get("search", ""),
        score_from=number("score_from", float),
        score_to=number("score_to", float),
        step_from=number("step_from", int),
        step_to=number("step_to", int),
    )


def _read(request: Request, name: str, reader: Callable[[str], T], otherwise: str) -> T:
    """A value of the query, or of the text that stands for it where it has none."""
    text = request.query_params.get(name, otherwise)
    try:
        return reader(text)
    except ValueError as error:
        raise HTTPException(400, f"{name}: {error}") from error


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


async def _run_error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409)
