"""A managed server in the clothes of `openai.AsyncOpenAI`, for libraries that want such a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NoReturn

from atropos_tui.inference.managed_server import ManagedServer


class _Creator:
    """Something with a `create` method."""

    def __init__(self, create: Callable[..., Awaitable[Any]]) -> None:
        self.create = create


class ManagedServerAdapter:
    """Offers `chat.completions.create`, `completions.create` and `base_url`; what they sample is tracked."""

    def __init__(self, managed_server: ManagedServer, base_url: str) -> None:
        self.base_url = base_url
        self.chat = SimpleNamespace(completions=_Creator(managed_server.chat_completion))
        self.completions = _Creator(managed_server.completion)

    async def post(self, path: str, body: dict[str, Any], cast_to: type) -> NoReturn:
        raise NotImplementedError(f"A managed server has no route {path!r}; use chat.completions or completions.")

    def copy(self, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("A managed server cannot be copied; open another one.")
