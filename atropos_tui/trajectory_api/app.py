"""The ASGI application: settings in, one callable out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from atropos_tui.trajectory_api.door import read_any_group, read_groups, read_plain_group
from atropos_tui.trajectory_api.endpoints import Endpoints
from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.guard import Guard
from atropos_tui.trajectory_api.http import (
    HTML,
    TEXT,
    Answer,
    Handler,
    Request,
    compressed,
    error_answer,
)
from atropos_tui.trajectory_api.inflating import InvalidGzipError
from atropos_tui.trajectory_api.inspect_endpoints import InspectEndpoints
from atropos_tui.trajectory_api.intake import GroupReader, Intake
from atropos_tui.trajectory_api.journal import Journal
from atropos_tui.trajectory_api.openapi import openapi_of, page_of
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.routes import routes_of
from atropos_tui.trajectory_api.run import ENVIRONMENT_TIMEOUT, TrainingRun
from atropos_tui.trajectory_api.serving.asgi import Receive, Scope, Send, serve_asgi, serve_lifespan
from atropos_tui.trajectory_api.serving.request_reader import MalformedRequestError
from atropos_tui.trajectory_api.strict.door import read_loose_group, read_loose_groups
from atropos_tui.trajectory_api.strict.run import UpstreamRun
from atropos_tui.trajectory_api.wire import Accepted, LenientRegistration, Registration


@dataclass(frozen=True, slots=True)
class Settings:
    """`body_limit` is in bytes, inflated or not; `environment_timeout` in seconds; no `token`: none is asked for."""

    body_limit: int = 512 * 1024 * 1024
    environment_timeout: float = ENVIRONMENT_TIMEOUT
    lenient: bool = False
    token: str | None = None
    journal: Path | None = None
    strict_upstream: bool = False


class TrajectoryApi:
    """The application. `run` holds its state; with a journal it goes on where that ended."""

    def __init__(self, settings: Settings) -> None:
        """Raises UsageError when the journal cannot be used."""
        self.body_limit = settings.body_limit
        self._journal = Journal(settings.journal) if settings.journal else None
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="trajectory-api")
        self.run = (
            UpstreamRun()
            if settings.strict_upstream
            else TrainingRun(self._journal, environment_timeout=settings.environment_timeout)
        )
        self._intake = Intake(self.run, self._journal, self._workers, settings.body_limit)
        self._guard = Guard(settings.token)
        strict = settings.strict_upstream
        endpoints = Endpoints(
            self.run,
            self._intake,
            self._workers,
            body_limit=settings.body_limit,
            registration=LenientRegistration if settings.lenient else Registration,
            read_one=GroupReader(read_loose_group) if strict else GroupReader(read_any_group, read_plain_group),
            read_list=GroupReader(read_loose_groups if strict else read_groups),
        )
        routes = routes_of(endpoints, InspectEndpoints(self.run, self._journal))
        self._description = openapi_of(routes)
        self._handlers: dict[tuple[str, str], Handler] = {(route.method, route.path): route.handler for route in routes}
        self._handlers |= {("GET", "/openapi.json"): self._openapi, ("GET", "/docs"): self._docs}
        if self._journal is not None:
            self._resume(self._journal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application as ASGI has it."""
        if scope["type"] == "lifespan":
            await serve_lifespan(receive, send, self.close)
        else:
            await serve_asgi(self, scope, receive, send)

    def refusal(self, head: Request) -> Answer | None:
        """The answer to a request that is refused whatever its body says; None for all others."""
        try:
            self._guard.check(head)
        except RequestError as error:
            return self.refused(error)
        return None if (head.method, head.path) in self._handlers else self._no_such_endpoint(head)

    def refused(self, error: RequestError) -> Answer:
        """The answer that tells of an error, which is counted."""
        refused = self.run.counters.refused_requests
        refused[error.status] = refused.get(error.status, 0) + 1
        if isinstance(error, InvalidGzipError | MalformedRequestError):
            return Answer(error.fault.encode(), error.status, TEXT)
        return error_answer(error)

    async def answer(self, request: Request) -> Answer:
        """The answer to a request that `refusal` let through. Raises RequestError."""
        answer = await self._handlers[request.method, request.path](request)
        return compressed(answer) if request.accepts_gzip else answer

    def close(self) -> None:
        self._intake.close()
        self._workers.shutdown(cancel_futures=True)
        if self._journal is not None:
            self._journal.close()

    def _no_such_endpoint(self, request: Request) -> Answer:
        allowed = ", ".join(method for method, path in self._handlers if path == request.path)
        if not allowed:
            return Answer(b'{"detail":"Not Found"}', 404)
        return Answer(b'{"detail":"Method Not Allowed"}', 405, headers=((b"allow", allowed.encode()),))

    async def _openapi(self, _: Request) -> Answer:
        return Answer(json.dumps(self._description).encode())

    async def _docs(self, _: Request) -> Answer:
        return Answer(page_of(self._description).encode(), media_type=HTML)

    def _resume(self, journal: Journal) -> None:
        was = journal.contents()
        registration = Registration.model_validate(was.registration) if was.registration else None
        environments = [Environment(**row) for row in was.environments.values()]
        groups = journal.waiting_groups(was)
        self.run.restore(registration, was.started, was.step, was.last_number, environments, groups)
        self.run.latest = journal.latest(was)
        self._intake.remember(_answers_of(was.remembered_keys(), self.run))


def create_app(settings: Settings | None = None) -> TrajectoryApi:
    """The trajectory API as an ASGI application. Raises UsageError when the journal cannot be used."""
    return TrajectoryApi(settings or Settings())


def _answers_of(keys: Iterable[str], run: TrainingRun) -> Iterable[tuple[str, Accepted]]:
    """The answers that repeated keys get after a restart."""
    waiting = {group.key: buffer.sequences for buffer in run.buffers.values() for group in buffer}
    for key in keys:
        if key in waiting:
            yield key, Accepted(status="buffered", buffer_size=waiting[key])
        else:
            yield key, Accepted(status="received")
