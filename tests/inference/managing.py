"""A ServerManager over fake servers, closed at the end of a test, and sinks for what it publishes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from atropos_tui.inference import APIServerConfig, ServerManager
from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.events import EventBase
from tests.inference.fake_inference_server import Dialect, FakeServer
from tests.inference.small_tokenizer import small_tokenizer

E = TypeVar("E", bound=EventBase)

SERVER_TYPES: dict[Dialect, str] = {
    "stock_vllm": "vllm", "scale_out_vllm": "vllm", "old_trl": "trl", "new_trl": "trl",
}  # fmt: skip
HELLO = [{"role": "user", "content": "hello"}]


def config_for(fake: FakeServer, **settings: Any) -> APIServerConfig:
    server_type = SERVER_TYPES.get(fake.dialect, fake.dialect)
    return APIServerConfig(**{"base_url": fake.url, "server_type": server_type, "model_name": "m", **settings})


@asynccontextmanager
async def managing(
    *fakes: FakeServer, manager: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[ServerManager]:
    """A manager of these servers, each with a small tokenizer in place of its model's."""
    servers = ServerManager([config_for(fake, **settings) for fake in fakes], **(manager or {}))
    for server in servers.servers:
        server.tokenizer = small_tokenizer()  # type: ignore[attr-defined]
    try:
        yield servers
    finally:
        await servers.close()


async def stopped(kind: Dialect = "openai") -> FakeServer:
    """A server that is not there any more."""
    fake = FakeServer(kind)
    async with fake:
        pass
    return fake


def health_threads() -> list[str]:
    """The threads that probe servers."""
    return [thread.name for thread in threading.enumerate() if thread.name == "inference-health"]


class Collecting:
    """A sink that keeps all events."""

    def __init__(self) -> None:
        self.events: list[EventBase] = []

    def publish(self, event: EventBase) -> None:
        self.events.append(event)

    def keep(self, content: GroupContent) -> None:
        del content

    def of(self, event_type: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, event_type)]


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until the condition holds; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come to hold"
        await asyncio.sleep(0.005)
