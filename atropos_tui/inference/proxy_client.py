"""A managed server that lives behind a proxy: the proxy samples and tracks, this end asks for both over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import InferenceError
from atropos_tui.inference.dialogue import plain_messages
from atropos_tui.inference.sequence import SequenceNode
from atropos_tui.inference.transport import Transport

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

PASSED_ON = ("max_tokens", "temperature", "n", "stop", "tools", "tool_choice")


class ProxyManagedServer:
    """One session on the proxy. `get_url` is an address that any OpenAI client can use for the same session."""

    def __init__(self, transport: Transport, session: dict[str, Any]) -> None:
        self.session_uuid: str = session["uuid"]
        self.model_name: str = session["model_name"]
        self.base_url: str | None = session.get("base_url")
        self._transport = transport
        self._nodes: list[SequenceNode] = []

    def get_url(self) -> str:
        return f"{self._transport.base_url}/{self.session_uuid}/v1"

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        """Chat with OpenAI's arguments; the proxy tracks the sequences. Raises InferenceError."""
        from openai.types.chat import ChatCompletion

        body: dict[str, Any] = {"messages": plain_messages(kwargs.get("messages") or [])}
        body |= {name: kwargs[name] for name in PASSED_ON if kwargs.get(name) is not None}
        answer = ChatCompletion.model_validate(
            await self._transport.post_json(f"{self.get_url()}/chat/completions", body)
        )
        for choice in answer.choices:
            # Plain dicts, as a managed server in this process gives them.
            calls: Any = [call.model_dump() for call in choice.message.tool_calls or []]
            choice.message.tool_calls = calls or None
        await self.fetch_state()
        return answer

    async def completion(self, **kwargs: Any) -> Any:
        raise NotImplementedError("The managed-server proxy has no completions; use chat_completion.")

    async def fetch_state(self) -> dict[str, Any]:
        """Ask the proxy for the sequences; afterwards `get_state` has them."""
        answer = await self._transport.get_json(f"{self._transport.base_url}/{self.session_uuid}/nodes")
        self._nodes = [SequenceNode.model_validate(node) for node in answer["nodes"]]
        return self.get_state()

    def get_state(self) -> dict[str, Any]:
        """The sequences as of the last chat."""
        return {"nodes": list(self._nodes)}

    def reset(self) -> None:
        self._nodes = []

    async def end(self) -> None:
        """Forget the session on the proxy."""
        await self._transport.delete(f"{self._transport.base_url}/{self.session_uuid}")


@asynccontextmanager
async def proxy_session(proxy_url: str, base_url: str | None, tool_parser: str) -> AsyncIterator[ProxyManagedServer]:
    """A new session, on the server of this `base_url` or on the one the proxy chooses. Raises InferenceError."""
    transport = Transport(proxy_url, None)
    try:
        session = await transport.post_json(
            f"{transport.base_url}/sessions/create", {"tool_parser": tool_parser, "base_url": base_url}
        )
        if not isinstance(session, dict) or "uuid" not in session:
            raise InferenceError(f"{proxy_url} is no managed-server proxy", "check proxy_url", kind="malformed")
        proxied = ProxyManagedServer(transport, session)
        try:
            yield proxied
        finally:
            await proxied.end()
    finally:
        await transport.close()
