"""Inference servers as they look on the wire: real HTTP on loopback, saying what a test tells them."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.inference.tiny_http_server import Received, TinyHttpServer, answer

Dialect = Literal["openai", "vllm", "stock_vllm", "scale_out_vllm", "sglang", "trl", "old_trl", "new_trl"]
Fault = Callable[[], Awaitable[bytes | None]]


@dataclass(frozen=True)
class Sample:
    """One choice that the fake "samples". The tokens of TRL's fake are what its client decodes."""

    tokens: list[int]
    logprobs: list[float]
    text: str = "hello"
    finish_reason: str = "stop"


def status(code: int, body: Any = None, headers: dict[str, str] | None = None) -> Fault:
    """Answer with this status and a body of JSON, or of text."""

    async def fault() -> bytes:
        return answer(code, {"error": {"message": f"told to say {code}"}} if body is None else body, headers)

    return fault


async def hang() -> bytes:
    """Accept the request and never answer it."""
    await asyncio.Event().wait()
    raise AssertionError


async def truncated_json() -> bytes:
    """Break off in the middle of a JSON value."""
    return answer(200, b'{"choices": [{"index": 0, "mess')


async def web_page() -> bytes:
    return answer(200, b"<html>Bad gateway, but with status 200</html>", {"content-type": "text/html"})


async def broken_off() -> bytes:
    """Promise more bytes than come, then close the connection."""
    return answer(200, b'{"choi', {"content-length": "1000", "connection": "close"})


async def connection_reset() -> None:
    """Reset the connection instead of answering."""


@dataclass
class FakeServer:
    """`requests` are the bodies received by path; the next ones meet `faults` first. `missed` are paths that it lacks.
    `samples` are what it samples, one a choice, used again from the beginning when they run out."""

    dialect: Dialect
    samples: Sequence[Sample] = (Sample([71, 72], [-0.5, -0.25], "hi"),)
    delay: float = 0.0
    most_choices: int = 1_000
    extra_choices: int = 0
    healthy: bool = True
    weight_version: Any = None
    faults: deque[Fault] = field(default_factory=deque)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def __post_init__(self) -> None:
        self._next_sample = 0
        self._http = TinyHttpServer(self._respond)

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, always on the same port."""
        await self._http.start()

    async def stop(self) -> None:
        await self._http.stop()

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def root(self) -> str:
        return self._http.root

    @property
    def url(self) -> str:
        return self.root if self.dialect in ("trl", "old_trl", "new_trl") else f"{self.root}/v1"

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for requested, body in self.requests if requested == path]

    async def _respond(self, request: Received) -> bytes | None:
        if request.method == "GET":
            return self._probed(request.path)
        answering = self._posts().get(request.path)
        if answering is None:
            self.missed.append(request.path)
            # vLLM has its route for token ids always, but answers there only with --enable-scale-out.
            if request.path == "/inference/v1/generate":
                return answer(403, {"error": {"message": "Scale-out endpoints are disabled."}})
            return answer(404, {"detail": "Not Found"})
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = json.loads(request.body)
            self.requests.append((request.path, body))
            self.headers.append(request.headers)
            if self.faults:
                return await self.faults.popleft()()
            if self.delay:
                await asyncio.sleep(self.delay)
            return answer(200, answering(body))
        finally:
            self.in_flight -= 1

    def _probed(self, path: str) -> bytes:
        self.probes.append(path)
        known = {"openai": "/v1/models", "trl": "/health/", "old_trl": "/health/"}.get(self.dialect, "/health")
        return answer(404 if path != known else 200 if self.healthy else 503)

    def _posts(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        if self.dialect in ("trl", "old_trl"):
            return {"/generate/": self._trl_generate, "/get_sequence_logprobs/": self._trl_sequence_logprobs}
        posts = {"/v1/chat/completions": self._chat, "/v1/completions": self._completions}
        if self.dialect == "vllm":
            posts["/generate"] = self._vllm_generate
        if self.dialect in ("scale_out_vllm", "new_trl"):
            posts["/inference/v1/generate"] = self._scale_out_generate
        if self.dialect == "sglang":
            posts["/generate"] = self._sglang_generate
        return posts

    def _sampled(self, n: int) -> list[Sample]:
        count = min(n, self.most_choices) + self.extra_choices
        start, self._next_sample = self._next_sample, self._next_sample + count
        return [self.samples[i % len(self.samples)] for i in range(start, start + count)]

    def _usage(self, sampled: Sequence[Sample]) -> dict[str, int]:
        completion = sum(len(sample.tokens) for sample in sampled)
        return {"prompt_tokens": 3, "completion_tokens": completion, "total_tokens": 3 + completion}

    def _chat(self, body: dict[str, Any]) -> Any:
        sampled = self._sampled(body.get("n", 1))
        choices = [
            {"index": 0, "finish_reason": s.finish_reason, "message": {"role": "assistant", "content": s.text}}
            for s in sampled
        ]
        return {
            "id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": choices,
            "usage": self._usage(sampled),
        }  # fmt: skip

    def _completions(self, body: dict[str, Any]) -> Any:
        if body.get("prompt_logprobs"):
            rows = self._prompt_logprobs(body["prompt_logprobs"], len(body["prompt"]))
            return {"choices": [{"index": 0, "prompt_logprobs": rows}]}
        sampled = self._sampled(body.get("n", 1))
        choices = []
        for s in sampled:
            choice: dict[str, Any] = {"index": 0, "finish_reason": s.finish_reason, "text": s.text, "logprobs": None}
            if body.get("return_token_ids"):
                choice |= {
                    "token_ids": s.tokens,
                    "prompt_token_ids": body["prompt"],
                    "logprobs": {"tokens": [f"token_id:{t}" for t in s.tokens], "token_logprobs": s.logprobs},
                }
            choices.append(choice)
        return {
            "id": "x", "object": "text_completion", "created": 1, "model": body["model"], "choices": choices,
            "usage": self._usage(sampled),
        }  # fmt: skip

    def _vllm_generate(self, body: dict[str, Any]) -> Any:
        ids = body["prompt"]["prompt_token_ids"]
        if "prompt_logprobs" in body:
            entry = [{str(token): -1.0 - token} for token in range(body["prompt_logprobs"])]
            return {"prompt_logprobs": [None, *[entry] * (len(ids) - 1)]}
        sampled = self._sampled(body.get("n", 1))
        result: dict[str, Any] = {
            "text": [s.text for s in sampled],
            "prompt_token_ids": ids,
            "token_ids": [s.tokens for s in sampled],
            "finish_reasons": [s.finish_reason for s in sampled],
            "logprobs": [[[{str(t): lp}] for t, lp in zip(s.tokens, s.logprobs, strict=False)] for s in sampled],
        }
        return result if self.weight_version is None else result | {"weight_version": self.weight_version}

    def _scale_out_generate(self, body: dict[str, Any]) -> Any:
        ids, sampling = body["token_ids"], body["sampling_params"]
        if sampling.get("prompt_logprobs"):
            return {"choices": [], "prompt_logprobs": self._prompt_logprobs(sampling["prompt_logprobs"], len(ids))}
        choices = [
            {
                "index": i,
                "finish_reason": s.finish_reason,
                "token_ids": s.tokens,
                "weight_versions": self.weight_version or [{"version": "default", "start": 0, "end": len(s.tokens)}],
                "logprobs": {"content": [{"logprob": logprob, "rank": 1} for logprob in s.logprobs]},
            }
            for i, s in enumerate(self._sampled(sampling.get("n", 1)))
        ]
        return {"output_mode": "tokens", "prompt_token_ids": None, "choices": choices}

    def _prompt_logprobs(self, k: int, length: int) -> Any:
        entry = {str(token): {"logprob": -1.0 - token, "rank": token + 1} for token in range(k)}
        return [None, *[entry] * (length - 1)]

    def _sglang_generate(self, body: dict[str, Any]) -> Any:
        ids = body["input_ids"]
        if body.get("top_logprobs_num"):
            position = [[-1.0 - token, token, None] for token in range(body["top_logprobs_num"])]
            return {"text": "", "meta_info": {"input_top_logprobs": [None, *[position] * (len(ids) - 1)]}}
        answers = [
            {
                "text": s.text,
                "meta_info": {
                    "finish_reason": {"type": s.finish_reason},
                    "output_token_logprobs": [[lp, t, None] for t, lp in zip(s.tokens, s.logprobs, strict=False)],
                    "weight_version": self.weight_version or "default",
                },
            }
            for s in self._sampled(body["sampling_params"].get("n", 1))
        ]
        return answers if len(answers) > 1 else answers[0]

    def _trl_generate(self, body: dict[str, Any]) -> Any:
        sampled = self._sampled(body["n"])
        prompt = body["prompts"][0]
        result: dict[str, Any] = {"completion_ids": [s.tokens for s in sampled]}
        if self.dialect == "trl":
            result["prompt_ids"] = [prompt if isinstance(prompt, list) else [1, 2, 3]]
            result["logprobs"] = [[[lp] for lp in s.logprobs] for s in sampled]
        return result

    def _trl_sequence_logprobs(self, body: dict[str, Any]) -> Any:
        k = body["top_logprobs"]
        rest = len(body["sequences"][0]) - 1
        return {
            "logprob_token_ids": [[[], *[list(range(k))] * rest]],
            "logprobs": [[[], *[[-1.0 - token for token in range(k)]] * rest]],
        }
