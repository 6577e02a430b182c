"""A managed server for servers that give no token ids: real text, placeholder tokens. Nothing to train on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from atropos_tui.inference.dialogue import plain_messages
from atropos_tui.inference.sequence import SequenceNode
from atropos_tui.inference.server import APIServer

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion


class DummyManagedServer:
    """Chats and completions of the server itself; every node has the same placeholders and says so in its metadata."""

    DUMMY_TOKENS: ClassVar[list[int]] = list(range(128))
    DUMMY_MASKED_TOKENS: ClassVar[list[int]] = [-100, *range(1, 128)]
    DUMMY_LOGPROBS: ClassVar[list[float]] = [-0.5] * 128

    def __init__(self, server: APIServer, tokenizer: Any = None, track_tree: bool = False) -> None:
        del tokenizer
        self.server = server
        self.track_tree = track_tree
        self.current_nodes: list[SequenceNode] = []
        self.sequences: dict[str, SequenceNode] = {}

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        answer = await self.server.chat_completion(**kwargs)
        said = [f"{m['role']}:{m.get('content') or ''}" for m in plain_messages(kwargs.get("messages") or [])]
        self._track(
            ("\n\n".join([*said, f"assistant:{choice.message.content or ''}"]), choice.finish_reason)
            for choice in answer.choices
        )
        return answer

    async def completion(self, **kwargs: Any) -> Completion:
        answer = await self.server.completion(**kwargs)
        self._track((f"{kwargs.get('prompt', '')}{choice.text}", choice.finish_reason) for choice in answer.choices)
        return answer

    async def get_logprobs(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError("A server without token ids gives no logprobs of prompts either.")

    def get_state(self) -> dict[str, Any]:
        if self.track_tree:
            return {"sequences": dict(self.sequences), "tree": dict(self.sequences)}
        return {"nodes": list(self.current_nodes)}

    def reset(self) -> None:
        self.current_nodes.clear()
        self.sequences.clear()

    def _track(self, texts: Iterable[tuple[str, str | None]]) -> None:
        for text, reason in texts:
            node = SequenceNode(
                full_text=text,
                tokens=list(self.DUMMY_TOKENS),
                masked_tokens=list(self.DUMMY_MASKED_TOKENS),
                logprobs=list(self.DUMMY_LOGPROBS),
                metadata={"finish_reason": reason or "stop", "dummy_tokens": True},
            )
            if self.track_tree:
                self.sequences[text] = node
            else:
                self.current_nodes.append(node)
