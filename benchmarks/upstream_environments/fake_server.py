"""An inference server that answers from `replies`: vLLM's `/generate` as upstream serves it, and OpenAI's endpoints."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from transformers import AutoTokenizer

from atropos_tui.http_server import HttpServer, bind_tcp, url_of
from benchmarks.upstream_environments.replies import prompt_of, reply

_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


class FakeServer:
    """`calls` counts the requests of each kind since `take_calls`."""

    def __init__(self, tokenizer_dir: str) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(tokenizer_dir)
        self._calls: Counter[str] = Counter()
        self.url = ""

    def take_calls(self) -> dict[str, int]:
        """How many requests of each kind came since the last time."""
        taken, self._calls = self._calls, Counter()
        return dict(taken)

    @contextmanager
    def running(self, port: int) -> Iterator[None]:
        """Serve on a port of loopback, in a thread, for the length of the block; `url` is where."""
        with serving(self._app(), port) as self.url:
            yield

    def _app(self) -> Starlette:
        post = ["POST"]
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route("/v1/models", self._models),
                Route("/generate", self._generate, methods=post),
                Route("/v1/completions", self._completions, methods=post),
                Route("/v1/chat/completions", self._chat, methods=post),
            ]
        )

    async def _health(self, _: Request) -> JSONResponse:
        return JSONResponse({})

    async def _models(self, _: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    async def _generate(self, request: Request) -> JSONResponse:
        body = await request.json()
        self._calls["generate"] += 1
        prompt = body["prompt"]
        ids = prompt["prompt_token_ids"] if isinstance(prompt, dict) else self._tokenizer.encode(prompt)
        if body.get("prompt_logprobs"):
            return JSONResponse(_prompt_logprobs(ids, body["prompt_logprobs"]))
        text = str(self._tokenizer.decode(ids))
        limit = body.get("max_tokens") or 512
        completions = [self._sampled(text, choice) for choice in range(body.get("n") or 1)]
        kept = [ids[:limit] for ids in completions]
        return JSONResponse(
            {
                "text": [self._tokenizer.decode(ids) for ids in kept],
                "logprobs": [[[{str(token): -0.25 - token % 7 / 10}] for token in ids] for ids in kept],
                "finish_reasons": ["stop" if len(ids) <= limit else "length" for ids in completions],
                "token_ids": kept,
                "prompt_token_ids": ids,
            }
        )

    def _sampled(self, prompt: str, choice: int) -> list[int]:
        said: list[int] = self._tokenizer.encode(reply(prompt, choice), add_special_tokens=False)
        return [*said, self._tokenizer.eos_token_id]

    async def _completions(self, request: Request) -> JSONResponse:
        body = await request.json()
        self._calls["completions"] += 1
        prompt = body["prompt"] if isinstance(body["prompt"], str) else str(self._tokenizer.decode(body["prompt"]))
        choices = [{"text": reply(prompt, choice)} for choice in range(body.get("n") or 1)]
        return _answer("text_completion", choices)

    async def _chat(self, request: Request) -> JSONResponse:
        body = await request.json()
        self._calls["chat"] += 1
        prompt = prompt_of(body["messages"])
        said = [reply(prompt, choice) for choice in range(body.get("n") or 1)]
        return _answer("chat.completion", [{"message": {"role": "assistant", "content": text}} for text in said])


def _prompt_logprobs(ids: list[int], top: int) -> dict[str, Any]:
    told = [{str(token + rank): {"logprob": -0.5 - rank} for rank in range(top)} for token in ids[1:]]
    return {"prompt_logprobs": [None, *told], "finish_reasons": ["stop"], "logprobs": [[[{"5": -0.5}]]]}


def _answer(kind: str, choices: list[dict[str, Any]]) -> JSONResponse:
    numbered = [
        {"index": index, "finish_reason": "stop", "logprobs": None, **choice} for index, choice in enumerate(choices)
    ]
    return JSONResponse(
        {"id": "1", "object": kind, "created": 1, "model": "stand-in", "choices": numbered, "usage": _USAGE}
    )


@contextmanager
def serving(app: Starlette, port: int = 0) -> Iterator[str]:
    """Serve an application on loopback, in a thread, for the length of the block; gives its address."""
    listener = bind_tcp("127.0.0.1", port)
    server = HttpServer(app, handle_signals=False)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve_on(listener)), daemon=True)
    thread.start()
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(10)
