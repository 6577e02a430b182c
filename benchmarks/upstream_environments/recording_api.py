"""A proxy before a trajectory API: passes everything on, and keeps the groups that environments post."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_KEPT = ("/register-env", "/scored_data", "/scored_data_list")
_OF_THE_CONNECTION = ("content-encoding", "content-length", "transfer-encoding", "connection", "host")


@dataclass(frozen=True)
class Post:
    """A body that an environment posted, and how the trajectory API answered."""

    path: str
    body: Any
    status: int


@dataclass
class Recording:
    """What came through the proxy, in order."""

    posts: list[Post] = field(default_factory=list)

    def registrations(self) -> list[Any]:
        return [post.body for post in self.posts if post.path == "/register-env"]

    def groups(self) -> list[dict[str, Any]]:
        """Every group, also those of lists, whatever the answer was."""
        told: list[dict[str, Any]] = []
        for post in self.posts:
            if post.path.startswith("/scored_data"):
                told += post.body if isinstance(post.body, list) else [post.body]
        return told

    def refusals(self) -> int:
        """How many posts of groups the trajectory API answered with an error."""
        return sum(post.status >= 400 for post in self.posts if post.path.startswith("/scored_data"))


def recording_app(api_url: str, recording: Recording) -> Starlette:
    """An application that stands before the trajectory API at `api_url`."""
    client = httpx.AsyncClient(base_url=api_url, timeout=60, trust_env=False)

    async def pass_on(request: Request) -> Response:
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        answer = await client.request(
            request.method, request.url.path, params=request.query_params, headers=headers, content=body
        )
        if request.method == "POST" and request.url.path in _KEPT:
            packed = request.headers.get("content-encoding") == "gzip"
            plain = gzip.decompress(body) if packed else body
            recording.posts.append(Post(request.url.path, json.loads(plain), answer.status_code))
        kept = {name: value for name, value in answer.headers.items() if name not in _OF_THE_CONNECTION}
        return Response(answer.content, answer.status_code, kept)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await client.aclose()

    return Starlette(routes=[Route("/{path:path}", pass_on, methods=["GET", "POST"])], lifespan=lifespan)
