"""The pocket policy behind HTTP, as a vLLM server looks to environments and trainers.

    python -m atropos_tui.pocket.server [--host 127.0.0.1] [--port 9001] [--seed 0]

OpenAI: `/v1/models`, `/v1/completions`, `/v1/chat/completions`. vLLM: `/generate`, `/health`, `/pause`, `/resume`,
`/update_weights` (from an npz file), `/weight_info`. Errors have OpenAI's shape.
"""

from __future__ import annotations

import os

# Two threads of BLAS on matrices this small cost more than they bring. Must be set before numpy loads.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from atropos_tui.arguments import OneLineParser
from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.errors import UsageError
from atropos_tui.http_server import HttpServer, bind_tcp, url_of
from atropos_tui.pocket.engine import Engine, Sampled
from atropos_tui.pocket.letters import PocketTokenizer, policy_shape
from atropos_tui.pocket.policy import Policy, initial_parameters
from atropos_tui.pocket.sampling import Sample, SamplingRequest
from atropos_tui.pocket.wire import (
    ChatRequest,
    CompletionRequest,
    GenerateRequest,
    SamplingFields,
    UpdateWeightsRequest,
    one_line,
)

MODEL_NAME = "pocket"
DEFAULT_MAX_TOKENS = 16

M = TypeVar("M", bound=BaseModel)


class RequestError(Exception):
    """A request that cannot be served; the text goes to the client with status 400."""


class PocketServer:
    """The endpoints. Prompts are text or ids; what is sampled is told in both."""

    def __init__(self, engine: Engine, tokenizer: PocketTokenizer) -> None:
        self._engine = engine
        self._tokenizer = tokenizer

    def app(self) -> Starlette:
        post: dict[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "/generate": self.generate,
            "/v1/completions": self.completions,
            "/v1/chat/completions": self.chat_completions,
            "/update_weights": self.update_weights,
            "/pause": self.pause,
            "/resume": self.resume,
        }
        get: dict[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "/health": self.health,
            "/v1/models": self.models,
            "/weight_info": self.weight_info,
        }
        routes = [Route(path, _answering(handler), methods=["POST"]) for path, handler in post.items()]
        routes += [Route(path, _answering(handler), methods=["GET"]) for path, handler in get.items()]
        return Starlette(routes=routes, lifespan=self._lifespan)

    async def generate(self, request: Request) -> dict[str, Any]:
        """Text, ids and one `{id: logprob}` a sampled token, for each of `n` samples."""
        wanted = _parse(GenerateRequest, await request.body())
        prompt = wanted.prompt
        ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else prompt.prompt_token_ids
        sampled = await self._sample(ids, wanted, wanted.max_tokens)
        answer: dict[str, Any] = {
            "text": [self._text(one) for one in sampled.samples],
            "prompt": self._tokenizer.decode(ids),
            "finish_reasons": [_finish_reason(one) for one in sampled.samples],
            "prompt_token_ids": ids,
            "token_ids": [one.tokens for one in sampled.samples],
            "weight_version": sampled.weight_version,
        }
        if wanted.logprobs is not None:
            answer["logprobs"] = [
                [[{str(token): logprob}] for token, logprob in zip(one.tokens, one.logprobs, strict=True)]
                for one in sampled.samples
            ]
        if wanted.prompt_logprobs is not None:
            scored = await self._engine.logprobs(ids, wanted.prompt_logprobs)
            answer["prompt_logprobs"] = [
                place and {str(token): logprob for token, logprob in place.items()} for place in scored
            ]
        return answer

    async def completions(self, request: Request) -> dict[str, Any]:
        wanted = _parse(CompletionRequest, await request.body())
        ids = self._tokenizer.encode(wanted.prompt) if isinstance(wanted.prompt, str) else wanted.prompt
        sampled = await self._sample(ids, wanted, wanted.max_tokens)
        choices = []
        for index, one in enumerate(sampled.samples):
            choice = {"index": index, "text": self._text(one), "finish_reason": _finish_reason(one), "logprobs": None}
            if wanted.logprobs is not None:
                choice["logprobs"] = {"tokens": self._pieces(one), "token_logprobs": one.logprobs}
            if wanted.return_token_ids:
                choice |= {"token_ids": one.tokens, "prompt_token_ids": ids}
            choices.append(choice)
        return _completion("text_completion", ids, sampled, choices)

    async def chat_completions(self, request: Request) -> dict[str, Any]:
        wanted = _parse(ChatRequest, await request.body())
        ids = self._tokenizer.encode_chat([(message.role, message.content or "") for message in wanted.messages])
        sampled = await self._sample(ids, wanted, wanted.max_completion_tokens or wanted.max_tokens)
        choices = []
        for index, one in enumerate(sampled.samples):
            message = {"role": "assistant", "content": self._text(one)}
            choice = {"index": index, "message": message, "finish_reason": _finish_reason(one), "logprobs": None}
            if wanted.logprobs:
                pieces = zip(self._pieces(one), one.logprobs, strict=True)
                choice["logprobs"] = {
                    "content": [
                        {"token": piece, "logprob": logprob, "bytes": list(piece.encode()), "top_logprobs": []}
                        for piece, logprob in pieces
                    ]
                }
            if wanted.return_token_ids:
                choice["token_ids"] = one.tokens
            choices.append(choice)
        answer = _completion("chat.completion", ids, sampled, choices)
        return answer | {"prompt_token_ids": ids} if wanted.return_token_ids else answer

    async def update_weights(self, request: Request) -> dict[str, Any]:
        wanted = _parse(UpdateWeightsRequest, await request.body())
        try:
            arrays = await asyncio.to_thread(_read_weights, wanted.path)
            await self._engine.replace_weights(arrays, wanted.weight_version)
        except (OSError, ValueError) as error:
            raise RequestError(f"cannot take weights from {wanted.path}: {error}") from error
        return {"message": "weights updated", "weight_version": wanted.weight_version}

    async def pause(self, _: Request) -> dict[str, Any]:
        self._engine.pause()
        return {"status": "paused"}

    async def resume(self, _: Request) -> dict[str, Any]:
        self._engine.resume()
        return {"status": "resumed"}

    async def health(self, _: Request) -> dict[str, Any]:
        return {"status": "ok"}

    async def models(self, _: Request) -> dict[str, Any]:
        model = {"id": MODEL_NAME, "object": "model", "owned_by": MODEL_NAME, "max_model_len": self._tokenizer.longest}
        return {"object": "list", "data": [model]}

    async def weight_info(self, _: Request) -> dict[str, Any]:
        paused = self._engine.paused
        return {"weight_version": self._engine.weight_version, "paused": paused, **asdict(self._engine.counts)}

    async def _sample(self, ids: list[int], wanted: SamplingFields, max_tokens: int | None) -> Sampled:
        room = self._tokenizer.longest - len(ids)
        if not ids:
            raise RequestError("the prompt is empty")
        if any(not 0 <= token < self._tokenizer.size for token in ids):
            raise RequestError(f"prompt token ids must be from 0 to {self._tokenizer.size - 1}")
        if room < 1:
            raise RequestError(f"the prompt has {len(ids)} tokens, this model's context is {self._tokenizer.longest}")
        return await self._engine.sample(
            SamplingRequest(
                tuple(ids),
                n=wanted.n or 1,
                max_tokens=min(max_tokens or DEFAULT_MAX_TOKENS, room),
                temperature=1.0 if wanted.temperature is None else wanted.temperature,
                top_p=1.0 if wanted.top_p is None else wanted.top_p,
            )
        )

    def _text(self, one: Sample) -> str:
        return self._tokenizer.decode(one.tokens, skip_end=True)

    def _pieces(self, one: Sample) -> list[str]:
        return [self._tokenizer.decode([token]) for token in one.tokens]

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        batching = asyncio.create_task(self._engine.run())
        try:
            yield
        finally:
            batching.cancel()


def _answering(handler: Callable[[Request], Awaitable[dict[str, Any]]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            answer, status = await handler(request), 200
        except RequestError as error:
            told = {"message": str(error), "type": "invalid_request_error", "param": None, "code": 400}
            answer, status = {"error": told}, 400
        return Response(orjson.dumps(answer), status, media_type="application/json")

    return endpoint


def _parse(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise RequestError(one_line(list(error.errors()))) from error


def _completion(kind: str, ids: list[int], sampled: Sampled, choices: list[dict[str, Any]]) -> dict[str, Any]:
    completion_tokens = sum(len(one.tokens) for one in sampled.samples)
    usage = {"prompt_tokens": len(ids), "completion_tokens": completion_tokens}
    return {
        "id": f"pocket-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL_NAME,
        "choices": choices,
        "usage": usage | {"total_tokens": len(ids) + completion_tokens},
        "weight_version": sampled.weight_version,
    }


def _finish_reason(one: Sample) -> str:
    return "stop" if one.stopped else "length"


def _read_weights(path: str) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit status."""
    parser = OneLineParser(prog="python -m atropos_tui.pocket.server", description="Serve the pocket policy.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=9001, help="port, 0 for a free one (default 9001)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first weights and of sampling (default 0)")
    parser.add_argument("--ready-fd", type=int, help="write a line of JSON here when listening")
    parser.add_argument("--lifeline-fd", type=int, help="end when the other end of this pipe closes")
    try:
        options = parser.parse_args(argv)
        listener = bind_tcp(options.host, options.port)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    tokenizer = PocketTokenizer()
    shape = policy_shape(tokenizer)
    policy = Policy(shape, initial_parameters(shape, options.seed))
    engine = Engine(policy, end_token=tokenizer.end, turn_token=tokenizer.turn, seed=options.seed)
    end_with_parent(options.lifeline_fd)
    url = url_of(listener)
    on_ready = lambda: announce_ready(options.ready_fd, url=url)  # noqa: E731
    HttpServer(PocketServer(engine, tokenizer).app(), on_ready=on_ready).run_on(listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
