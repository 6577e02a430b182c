"""The HTTP side of the inference server: a Starlette application around an Engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pydantic
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from atropos_tui.errors import AtroposError
from atropos_tui.pocket.answers import (
    MODEL,
    Choice,
    Completed,
    chat_answer,
    completion_answer,
    generate_answer,
)
from atropos_tui.pocket.engine import Engine
from atropos_tui.pocket.positions import room_after
from atropos_tui.pocket.protocol import (
    ChatRequest,
    CompletionRequest,
    GenerateRequest,
    RequestError,
    Sampling,
    WeightsRequest,
    error_body,
)
from atropos_tui.pocket.sampling import SamplingRequest
from atropos_tui.pocket.tokenizer import tokenizer_dir
from atropos_tui.pocket.weights import read_weights

# vLLM names a model by the path it was loaded from, so clients that load the tokenizer by the model's name work here.
MODEL_NAMES = (MODEL, str(tokenizer_dir()))

RequestT = TypeVar("RequestT", bound=pydantic.BaseModel)


def create_app(engine: Engine, context: int = 0) -> Starlette:
    """OpenAI's chat and completions, upstream's `/generate`, and vLLM's routes for weights and for pausing.

    Up to `context` tokens, prompt and answer together, are taken even where they are out of the policy's reach.
    """
    routes = Routes(engine, context)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with engine.running():
            yield

    return Starlette(
        lifespan=lifespan,
        routes=[
            Route("/v1/chat/completions", routes.chat_completions, methods=["POST"]),
            Route("/v1/completions", routes.completions, methods=["POST"]),
            Route("/v1/models", routes.models, methods=["GET"]),
            Route("/generate", routes.generate, methods=["POST"]),
            Route("/health", routes.health, methods=["GET"]),
            Route("/update_weights", routes.update_weights, methods=["POST"]),
            Route("/weight_info", routes.weight_info, methods=["GET"]),
            Route("/pause", routes.pause, methods=["POST"]),
            Route("/resume", routes.resume, methods=["POST"]),
        ],
        exception_handlers={
            RequestError: _tell_request_error,
            HTTPException: _tell_http_error,
            Exception: _tell_fault,
        },
    )


class Routes:
    """One method a route."""

    def __init__(self, engine: Engine, context: int = 0) -> None:
        self._engine = engine
        self._context = context

    async def chat_completions(self, http: HttpRequest) -> Response:
        request = await _read(http, ChatRequest)
        _check_model(request.model)
        text = self._engine.characters.render_chat(
            [{"role": message.role, "content": message.text} for message in request.messages]
        )
        most = request.max_completion_tokens or request.max_tokens
        completed = await self._complete(request, self._engine.characters.encode(text), most)
        return _json(chat_answer(request, completed, self._engine.characters))

    async def completions(self, http: HttpRequest) -> Response:
        request = await _read(http, CompletionRequest)
        _check_model(request.model)
        prompts = self._prompts(request.prompt)
        completed = await asyncio.gather(*(self._complete(request, prompt, request.max_tokens) for prompt in prompts))
        return _json(completion_answer(request, completed, self._engine.characters))

    async def generate(self, http: HttpRequest) -> Response:
        request = await _read(http, GenerateRequest)
        prompt = request.prompt if isinstance(request.prompt, str) else request.prompt.prompt_token_ids
        ids = self._prompts(prompt)[0]
        completed = await self._complete(request, ids, request.max_tokens)
        prompt_logprobs = None if request.prompt_logprobs is None else await self._engine.prompt_logprobs(ids)
        return _json(generate_answer(request, completed, self._engine.characters, prompt_logprobs))

    async def models(self, _: HttpRequest) -> Response:
        longest = max(self._context, 2 * self._engine.reach)
        card = {"id": MODEL, "object": "model", "owned_by": "atropos-tui", "max_model_len": longest}
        return _json({"object": "list", "data": [card]})

    async def health(self, _: HttpRequest) -> Response:
        return Response()

    async def update_weights(self, http: HttpRequest) -> Response:
        """New weights as `{"path": …, "weight_version": …}`, or as an npz file's bytes with the version as query."""
        engine = self._engine
        if http.headers.get("content-type", "").startswith("application/json"):
            request = await _read(http, WeightsRequest)
            source: Path | bytes = request.path
        else:
            source = await http.body()
            request = _checked({"path": ".", "weight_version": http.query_params.get("weight_version")}, WeightsRequest)
        try:
            parameters = await asyncio.to_thread(read_weights, source, engine.weights.policy.parameters)
        except AtroposError as error:
            raise RequestError(str(error), param="path") from error
        version = engine.weights.version + 1 if request.weight_version is None else request.weight_version
        engine.replace_weights(parameters, version)
        return _json({"status": "updated", "weight_version": version})

    async def weight_info(self, _: HttpRequest) -> Response:
        engine = self._engine
        return _json(
            {
                "weight_version": engine.weights.version,
                "parameters": sum(value.size for value in engine.weights.policy.parameters.values()),
                "paused": engine.is_paused,
                "waiting_requests": engine.waiting,
                "sequences_sampled": engine.sequences_sampled,
                "tokens_sampled": engine.tokens_sampled,
            }
        )

    async def pause(self, _: HttpRequest) -> Response:
        self._engine.pause()
        return _json({"status": "paused"})

    async def resume(self, _: HttpRequest) -> Response:
        self._engine.resume()
        return _json({"status": "resumed"})

    async def _complete(self, sampling: Sampling, prompt: list[int], most: int | None) -> Completed:
        """Samples for one prompt, at most `most` tokens each, or as many as there is room for."""
        engine = self._engine
        self._check_prompt(prompt)
        room = max(room_after(prompt, engine.characters.turn, engine.reach), self._context - len(prompt))
        if room == 0 or (most is not None and most > room):
            raise RequestError(
                f"the prompt of {len(prompt)} tokens leaves room for {room} more, {most or 1} were asked for",
                param="max_tokens" if room else "prompt",
            )
        request = SamplingRequest(tuple(prompt), sampling.n, most or room, sampling.temperature, sampling.top_p)
        samples, weight_version = await engine.sample(request)
        choices = [Choice.of(sample, sampling.stops, engine.characters) for sample in samples]
        return Completed(prompt, choices, weight_version)

    def _prompts(self, prompt: str | list[int] | list[str] | list[list[int]]) -> list[list[int]]:
        """Token ids of each prompt of a request, which may have one or many, as text or ids."""
        many: Sequence[Any] = [prompt] if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)) else prompt
        if not many:
            raise RequestError("the prompt is empty", param="prompt")
        return [self._engine.characters.encode(one) if isinstance(one, str) else one for one in many]

    def _check_prompt(self, prompt: list[int]) -> None:
        if not prompt:
            raise RequestError("the prompt is empty", param="prompt")
        size = self._engine.characters.size
        unknown = next((token for token in prompt if not 0 <= token < size), None)
        if unknown is not None:
            raise RequestError(f"token id {unknown} is not in the vocabulary of {size}", param="prompt")


def _check_model(model: str | None) -> None:
    if model is not None and model not in MODEL_NAMES:
        raise RequestError(f"there is no model {model!r}, only {MODEL!r}", status=404, param="model")


async def _read(http: HttpRequest, kind: type[RequestT]) -> RequestT:
    try:
        fields = orjson.loads(await http.body())
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the body is not JSON: {error}") from error
    return _checked(fields, kind)


def _checked(fields: Any, kind: type[RequestT]) -> RequestT:
    try:
        return kind.model_validate(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"{place}: {first['msg']}" if place else first["msg"], param=place or None) from error


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


async def _tell_request_error(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _json(error.body, error.status)


async def _tell_http_error(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json(error_body(error.detail, "HTTPError", None, error.status_code), error.status_code)


async def _tell_fault(_: HttpRequest, error: Exception) -> Response:
    """A fault of ours; the server's log has the traceback."""
    return _json(error_body(f"{type(error).__name__}: {error}", "InternalServerError", None, 500), 500)
