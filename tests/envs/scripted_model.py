"""A model at command: the wire of vLLM (token ids and logprobs) and of OpenAI's chat, whose words a test decides on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.inference.tiny_http_server import Received, TinyHttpServer, answer

LOGPROB = -0.25

# The text of the prompt and how many replies are asked for → the replies, or bytes of an answer of its own.
Replies = Callable[[str, int], list[str]]


class ScriptedModel:
    """`tokenizer` writes and reads the tokens, one a character, and an end of sequence. Counts its requests."""

    def __init__(self, tokenizer: Any, replies: Replies) -> None:
        self._tokenizer = tokenizer
        self._replies = replies
        self._http = TinyHttpServer(self._respond)
        self.requests = 0

    async def __aenter__(self) -> ScriptedModel:
        await self._http.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.stop()

    @property
    def url(self) -> str:
        return f"{self._http.root}/v1"

    async def _respond(self, request: Received) -> bytes:
        if request.method == "GET":
            return answer(200)
        self.requests += 1
        body = json.loads(request.body)
        if request.path == "/generate":
            return answer(200, self._generated(body))
        text = "\n".join(message["content"] for message in body["messages"])
        choices = [
            {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            for index, reply in enumerate(self._replies(text, body.get("n", 1)))
        ]
        return answer(200, {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices})

    def _generated(self, body: dict[str, Any]) -> dict[str, Any]:
        ids = body["prompt"]["prompt_token_ids"]
        texts = self._replies(self._tokenizer.decode(ids), body.get("n", 1))
        encoded = [
            [*self._tokenizer.encode(text, add_special_tokens=False), self._tokenizer.eos_token_id] for text in texts
        ]
        return {
            "text": texts,
            "prompt_token_ids": ids,
            "token_ids": encoded,
            "finish_reasons": ["stop"] * len(texts),
            "logprobs": [[[{str(token): LOGPROB}] for token in tokens] for tokens in encoded],
        }
