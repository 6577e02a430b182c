"""Answers of the inference server, in the shapes of OpenAI, stock vLLM 0.32 and upstream's patched vLLM server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.layers import Array
from atropos_tui.pocket.protocol import ChatRequest, CompletionRequest, GenerateRequest
from atropos_tui.pocket.sampling import Sample

MODEL = "pocket"


@dataclass(frozen=True, slots=True)
class Choice:
    """One completion as it is told: its sample up to a stop string, and the text before that."""

    tokens: list[int]
    all_logprobs: Array
    text: str
    finish_reason: str

    @classmethod
    def of(cls, sample: Sample, stops: Sequence[str], characters: Characters) -> Choice:
        for count in range(1, len(sample.tokens) + 1) if stops else ():
            text = characters.decode(sample.tokens[:count])
            for stop in stops:
                if text.endswith(stop):
                    return cls(sample.tokens[:count], sample.all_logprobs[:count], text.removesuffix(stop), "stop")
        ended = sample.tokens[-1] == characters.end
        text = characters.decode(sample.tokens)
        return cls(sample.tokens, sample.all_logprobs, text, "stop" if ended else "length")

    def logprob(self, place: int) -> float:
        return float(self.all_logprobs[place, self.tokens[place]])


@dataclass(frozen=True, slots=True)
class Completed:
    """A prompt and what was sampled for it, with the version of the weights that did."""

    prompt: Sequence[int]
    choices: list[Choice]
    weight_version: int


def likeliest(logprobs: Array, token: int, others: int) -> dict[int, float]:
    """The logprob of a token first, then those of the likeliest `others`; from all logprobs (V,) of one place."""
    first = np.argsort(-logprobs, kind="stable")[:others] if others else ()
    return {int(one): float(logprobs[one]) for one in (token, *first)}


def generate_answer(
    request: GenerateRequest, completed: Completed, characters: Characters, prompt_logprobs: Array | None
) -> dict[str, Any]:
    """`POST /generate` of upstream's vLLM server, plus `weight_version`, and `prompt_logprobs` if asked for."""
    answer: dict[str, Any] = {
        "text": [choice.text for choice in completed.choices],
        "prompt": characters.decode(completed.prompt),
        "finish_reasons": [choice.finish_reason for choice in completed.choices],
        "prompt_token_ids": list(completed.prompt),
        "token_ids": [choice.tokens for choice in completed.choices],
        "weight_version": completed.weight_version,
    }
    if request.logprobs is not None:
        answer["logprobs"] = [_generate_logprobs(choice, request.logprobs) for choice in completed.choices]
    if prompt_logprobs is not None:
        places = zip(prompt_logprobs, completed.prompt[1:], strict=True)
        told = [_by_name(likeliest(row, token, request.prompt_logprobs or 0)) for row, token in places]
        answer["prompt_logprobs"] = [None, *told]
    return answer


def chat_answer(request: ChatRequest, completed: Completed, characters: Characters) -> dict[str, Any]:
    """`POST /v1/chat/completions`; `prompt_token_ids` stand beside the choices, as in stock vLLM."""
    choices = []
    for index, choice in enumerate(completed.choices):
        told: dict[str, Any] = {
            "index": index,
            "message": {"role": "assistant", "content": choice.text},
            "logprobs": _chat_logprobs(choice, request, characters) if request.logprobs else None,
            "finish_reason": choice.finish_reason,
        }
        if request.return_token_ids:
            told["token_ids"] = choice.tokens
        choices.append(told)
    answer = _openai_answer("chat.completion", "chatcmpl", choices, [completed])
    if request.return_token_ids:
        answer["prompt_token_ids"] = list(completed.prompt)
    return answer


def completion_answer(
    request: CompletionRequest, all_completed: Sequence[Completed], characters: Characters
) -> dict[str, Any]:
    """`POST /v1/completions` for one or more prompts; `prompt_token_ids` stand in the choices, as in stock vLLM."""
    choices: list[dict[str, Any]] = []
    for completed in all_completed:
        for choice in completed.choices:
            told: dict[str, Any] = {
                "index": len(choices),
                "text": choice.text,
                "logprobs": None if request.logprobs is None else _completion_logprobs(choice, request, characters),
                "finish_reason": choice.finish_reason,
            }
            if request.return_token_ids:
                told |= {"token_ids": choice.tokens, "prompt_token_ids": list(completed.prompt)}
            choices.append(told)
    return _openai_answer("text_completion", "cmpl", choices, all_completed)


def _openai_answer(
    kind: str, prefix: str, choices: list[dict[str, Any]], all_completed: Sequence[Completed]
) -> dict[str, Any]:
    prompt_tokens = sum(len(completed.prompt) for completed in all_completed)
    sampled = sum(len(choice.tokens) for completed in all_completed for choice in completed.choices)
    return {
        "id": f"{prefix}-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt_tokens, "completion_tokens": sampled, "total_tokens": prompt_tokens + sampled,
        },
        "weight_version": min(completed.weight_version for completed in all_completed),
    }  # fmt: skip


def _generate_logprobs(choice: Choice, others: int) -> list[list[dict[str, float]]]:
    places = zip(choice.all_logprobs, choice.tokens, strict=True)
    return [[_by_name(likeliest(row, token, others))] for row, token in places]


def _by_name(logprobs: dict[int, float]) -> dict[str, float]:
    return {str(token): logprob for token, logprob in logprobs.items()}


def _completion_logprobs(choice: Choice, request: CompletionRequest, characters: Characters) -> dict[str, Any]:
    def written(token: int) -> str:
        return f"token_id:{token}" if request.return_tokens_as_token_ids else characters.token(token)

    places = zip(choice.all_logprobs, choice.tokens, strict=True)
    top = [likeliest(row, token, request.logprobs or 0) for row, token in places]
    return {
        "tokens": [written(token) for token in choice.tokens],
        "token_logprobs": [choice.logprob(place) for place in range(len(choice.tokens))],
        "top_logprobs": [{written(token): logprob for token, logprob in place.items()} for place in top],
        "text_offset": [len(characters.decode(choice.tokens[:place])) for place in range(len(choice.tokens))],
    }


def _chat_logprobs(choice: Choice, request: ChatRequest, characters: Characters) -> dict[str, Any]:
    def entry(token: int, logprob: float) -> dict[str, Any]:
        word = f"token_id:{token}" if request.return_tokens_as_token_ids else characters.token(token)
        return {"token": word, "logprob": logprob, "bytes": list(characters.token(token).encode())}

    content = []
    for place, token in enumerate(choice.tokens):
        top = likeliest(choice.all_logprobs[place], token, request.top_logprobs)
        told = sorted(top.items(), key=lambda pair: -pair[1])[: request.top_logprobs]
        content.append(entry(token, top[token]) | {"top_logprobs": [entry(*pair) for pair in told]})
    return {"content": content}
