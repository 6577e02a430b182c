"""Managed servers over HTTP: an OpenAI-compatible chat for programs elsewhere, whose tokens are tracked here.

Each session is one managed server at `/{uuid}/v1`. Paths and bodies are upstream's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.inference.config import APIServerConfig
from atropos_tui.inference.dummy_managed_server import DummyManagedServer
from atropos_tui.inference.managed_server import ManagedServer
from atropos_tui.inference.openai_server import OpenAIServer
from atropos_tui.inference.prompts import load_tokenizer
from atropos_tui.inference.server import APIServer
from atropos_tui.inference.server_manager import ServerManager
from atropos_tui.inference.tool_parsers import parser_named

SESSION_TTL = 3600.0


class SessionRequest(BaseModel):
    tool_parser: str = "hermes"
    track_tree: bool = False
    base_url: str | None = None


class ChatRequest(BaseModel):
    """An OpenAI chat; what is not named here goes to the server as it is."""

    model_config = ConfigDict(extra="allow")

    messages: list[dict[str, Any]]
    max_tokens: int = 1024
    temperature: float = 1.0
    n: int = 1
    stop: list[str] | str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None


class SetupRequest(BaseModel):
    servers: list[dict[str, Any]] = []
    model_name: str | None = None
    tokenizer_name: str = "none"


@dataclass
class Session:
    uuid: str
    manager: ServerManager
    server: APIServer
    managed: ManagedServer | DummyManagedServer
    tool_parser: str
    created_at: float = field(default_factory=time.time)
    last_accessed: float = field(default_factory=time.time)
    # One chat at a time: the next one goes on from the sequence that this one makes.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def nodes(self) -> list[Any]:
        state = self.managed.get_state()
        return list(state["sequences"].values()) if "sequences" in state else list(state["nodes"])

    def end(self) -> None:
        self.managed.reset()
        self.manager.unreserve(self.server)


class Sessions:
    """The open sessions, and the servers that new ones get. Sessions that nobody uses for an hour end."""

    def __init__(self, manager: ServerManager, tokenizer: Any, model_name: str) -> None:
        self.manager = manager
        self.tokenizer = tokenizer
        self.model_name = model_name
        self.open: dict[str, Session] = {}
        self._retired: list[ServerManager] = []

    def begin(self, asked: SessionRequest) -> Session:
        """Raises HTTPException 404 when no server has the address asked for, 400 when there is no such tool parser."""
        self._end_idle()
        try:
            parser_named(asked.tool_parser)
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        server = self.manager.reserve(asked.base_url)
        if server is None:
            known = [server.config.base_url for server in self.manager.servers]
            raise HTTPException(404, f"No server with base_url '{asked.base_url}'. Available: {known}")
        managed: ManagedServer | DummyManagedServer
        if isinstance(server, OpenAIServer):
            managed = DummyManagedServer(server, self.tokenizer, track_tree=asked.track_tree)
        else:
            managed = ManagedServer(server, self.tokenizer, asked.track_tree, tool_parser=asked.tool_parser)
        session = Session(str(uuid.uuid4()), self.manager, server, managed, asked.tool_parser)
        self.open[session.uuid] = session
        return session

    def named(self, session_uuid: str) -> Session:
        """Raises HTTPException 404 for an unknown one."""
        if session_uuid not in self.open:
            raise HTTPException(404, f"Session {session_uuid} not found")
        session = self.open[session_uuid]
        session.last_accessed = time.time()
        return session

    async def end(self, session_uuid: str) -> None:
        self.named(session_uuid).end()
        del self.open[session_uuid]
        await self._close_retired()

    async def replace_servers(self, manager: ServerManager) -> None:
        """New sessions get these servers; open ones keep theirs until they end."""
        self._retired.append(self.manager)
        self.manager = manager
        await self._close_retired()

    async def close(self) -> None:
        for manager in (self.manager, *self._retired):
            await manager.close()

    def _end_idle(self) -> None:
        oldest = time.time() - SESSION_TTL
        for session in [session for session in self.open.values() if session.last_accessed < oldest]:
            session.end()
            del self.open[session.uuid]

    async def _close_retired(self) -> None:
        used = {id(session.manager) for session in self.open.values()}
        for manager in [manager for manager in self._retired if id(manager) not in used]:
            self._retired.remove(manager)
            await manager.close()


def create_app(server_manager: ServerManager, tokenizer: Any, model_name: str = "unknown") -> FastAPI:
    """The proxy as an ASGI application. Errors are `{"error": {"message", "type", "code"}}`."""
    app = FastAPI(title="Managed-server proxy")
    sessions = Sessions(server_manager, tokenizer, model_name)
    app.state.sessions = sessions

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> JSONResponse:
        return openai_error(error.status_code, str(error.detail), "invalid_request_error")

    @app.get("/health")
    async def health() -> dict[str, Any]:
        servers = sessions.manager.servers
        return {
            "status": "ok", "model": sessions.model_name, "sessions": len(sessions.open), "servers": len(servers),
            "healthy_servers": sum(server.usable for server in servers),
        }  # fmt: skip

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        model = {"id": sessions.model_name, "object": "model", "created": int(time.time()), "owned_by": "atropos"}
        return {"object": "list", "data": [model]}

    @app.get("/servers")
    async def servers() -> dict[str, Any]:
        return {"servers": [_server_row(i, server) for i, server in enumerate(sessions.manager.servers)]}

    @app.post("/setup")
    async def setup(asked: SetupRequest) -> dict[str, Any]:
        sessions.model_name = asked.model_name or sessions.model_name
        if asked.servers:
            configs = server_configs(asked.servers, sessions.model_name, asked.tokenizer_name)
            await sessions.replace_servers(ServerManager(configs))
        return {"status": "ok", "servers": len(sessions.manager.servers), "model_name": sessions.model_name}

    @app.get("/sessions")
    async def list_sessions() -> dict[str, Any]:
        return {"sessions": [_session_row(session, sessions.model_name) for session in sessions.open.values()]}

    @app.post("/sessions/create")
    async def create_session(asked: SessionRequest) -> dict[str, Any]:
        session = sessions.begin(asked)
        return {
            "uuid": session.uuid, "model_name": sessions.model_name, "tool_parser": session.tool_parser,
            "base_url": session.server.config.base_url, "created_at": session.created_at,
        }  # fmt: skip

    @app.post("/{session_uuid}/v1/chat/completions", response_model=None)
    async def chat(session_uuid: str, asked: ChatRequest) -> dict[str, Any] | JSONResponse:
        session = sessions.named(session_uuid)
        if not asked.messages:
            return openai_error(400, "messages must not be empty", "invalid_request_error")
        arguments = asked.model_dump(exclude_none=True)
        try:
            async with session.lock:
                answer = await session.managed.chat_completion(**arguments)
        except AtroposError as error:
            return openai_error(500, f"Completion failed: {error}", "server_error")
        return {
            "id": answer.id, "object": "chat.completion", "created": answer.created, "model": sessions.model_name,
            "choices": [_choice_row(choice) for choice in answer.choices],
            "usage": answer.usage.model_dump(exclude_none=True) if answer.usage else None,
        }  # fmt: skip

    @app.post("/{session_uuid}/v1/chat/completions/render", response_model=None)
    async def render(session_uuid: str, asked: ChatRequest) -> dict[str, Any]:
        managed = sessions.named(session_uuid).managed
        # A placeholder has no prompts of its own; what a fresh session would send is rendered for it.
        renderer = managed if isinstance(managed, ManagedServer) else ManagedServer(managed.server, sessions.tokenizer)
        text, ids = renderer.render(asked.messages, asked.tools)
        return {"prompt_text": text, "token_ids": ids, "num_tokens": len(ids)}

    @app.get("/{session_uuid}/nodes")
    async def nodes(session_uuid: str) -> dict[str, Any]:
        return {"nodes": [node.model_dump() for node in sessions.named(session_uuid).nodes()]}

    @app.delete("/{session_uuid}")
    async def delete_session(session_uuid: str) -> dict[str, Any]:
        await sessions.end(session_uuid)
        return {"status": "deleted", "uuid": session_uuid}

    return app


def openai_error(status: int, message: str, error_type: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": error_type, "code": status}}, status)


def server_configs(rows: Sequence[dict[str, Any]], model_name: str, tokenizer_name: str) -> list[APIServerConfig]:
    """Configs of the rows of a servers file or of `/setup`; servers are of type vllm unless they say otherwise."""
    defaults = {"server_type": "vllm", "model_name": model_name, "tokenizer_name": tokenizer_name}
    return [APIServerConfig(**{**defaults, **row}) for row in rows]


def _server_row(index: int, server: APIServer) -> dict[str, Any]:
    config = server.config
    return {
        "index": index, "base_url": config.base_url, "healthy": server.usable, "model_name": config.model_name,
        "server_type": config.server_type,
    }  # fmt: skip


def _session_row(session: Session, model_name: str) -> dict[str, Any]:
    return {
        "uuid": session.uuid, "model_name": model_name, "base_url": session.server.config.base_url,
        "created_at": session.created_at, "last_accessed": session.last_accessed, "num_nodes": len(session.nodes()),
    }  # fmt: skip


def _choice_row(choice: Any) -> dict[str, Any]:
    message = {"role": choice.message.role, "content": choice.message.content}
    if choice.message.tool_calls:
        message["tool_calls"] = choice.message.tool_calls
    return {"index": choice.index, "message": message, "finish_reason": choice.finish_reason}


def main() -> None:
    """`python -m atropos_tui.inference.managed_server_proxy --config FILE`; the file is what `/setup` takes."""
    from atropos_tui.http_server import HttpServer, bind_tcp

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--config", type=Path, required=True, help='{"model_name": …, "servers": [{"base_url": …}]}')
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9100)
    options = parser.parse_args()
    asked = SetupRequest(**json.loads(options.config.read_text()))
    configs = server_configs(asked.servers, asked.model_name or "default", asked.tokenizer_name)
    manager = ServerManager(configs)
    app = create_app(manager, load_tokenizer(configs[0]), configs[0].model_name)
    HttpServer(app).run_on(bind_tcp(options.host, options.port))


if __name__ == "__main__":
    main()
