"""What servers answer: the types, how several answers become one, and what an answer tells about itself."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from openai.types import Completion, CompletionUsage
    from openai.types.chat import ChatCompletion

R = TypeVar("R")

# A finish reason as servers give it: a word, or SGLang's {"type": word, …}.
RawFinishReason = str | Mapping[str, Any] | None


class _TokenCompletion(NamedTuple):
    prompt_tokens: list[int]
    output_tokens: list[list[int]]
    output_logprobs: list[list[float]]
    finish_reasons: list[RawFinishReason]


class TokenCompletion(_TokenCompletion):
    """Sampled token ids and their logprobs, one list a choice. Unpacks into the four lists.

    `weight_versions` has the policy version of each choice, the oldest when it changed on the way; None where the
    server does not tell.
    """

    weight_versions: tuple[int | None, ...] = ()

    @classmethod
    def of(
        cls,
        prompt_tokens: list[int],
        output_tokens: list[list[int]],
        output_logprobs: list[list[float]],
        finish_reasons: list[RawFinishReason],
        weight_versions: Sequence[int | None],
    ) -> TokenCompletion:
        completion = cls(prompt_tokens, output_tokens, output_logprobs, finish_reasons)
        completion.weight_versions = tuple(weight_versions)
        return completion


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer says about itself; tokens are summed over the choices."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reasons: tuple[str, ...] = ()
    weight_version: int | None = None


@dataclass(frozen=True)
class Operation(Generic[R]):
    """One thing that servers can do: the server's method for it, and how to count, merge and read its answers."""

    method: str
    choices: Callable[[R], int]
    merge: Callable[[Sequence[R], int], R]
    tell: Callable[[R], Told]


def finish_word(raw: RawFinishReason) -> str:
    """The finish reason as one word. Empty when the server gave none."""
    if isinstance(raw, Mapping):
        return str(raw.get("type") or "")
    return str(raw or "")


def openai_finish_reason(raw: RawFinishReason) -> Any:
    """The finish reason in OpenAI's words. What was cut off in any other way, such as `abort`, counts as `length`,
    so that code which drops truncated answers drops these too."""
    word = finish_word(raw)
    if word in ("stop", "length", "tool_calls", "content_filter", "function_call"):
        return word
    return "stop" if word in ("", "eos", "eos_token", "stop_sequence") else "length"


def chat_completion(model: str, choices: Sequence[Any], usage: CompletionUsage | None = None) -> ChatCompletion:
    from openai.types.chat import ChatCompletion

    return ChatCompletion(
        id=f"chatcmpl-{uuid.uuid4().hex}", created=int(time.time()), model=model, object="chat.completion",
        choices=list(choices), usage=usage,
    )  # fmt: skip


def chat_choice(index: int, content: str | None, finish_reason: Any, tool_calls: Sequence[Any] = ()) -> Any:
    """One choice. `tool_calls` become plain dicts on the message, as upstream's managed server gives them."""
    from openai.types.chat import ChatCompletionMessage
    from openai.types.chat.chat_completion import Choice

    message = ChatCompletionMessage(role="assistant", content=content)
    if tool_calls:
        message.tool_calls = list(tool_calls)
    return Choice(index=index, finish_reason=finish_reason, message=message)


def text_completion(
    model: str, texts: Sequence[str], reasons: Sequence[RawFinishReason], usage: CompletionUsage | None = None
) -> Completion:
    from openai.types import Completion, CompletionChoice

    choices = [
        CompletionChoice(index=i, text=text, finish_reason=_text_reason(reason), logprobs=None)
        for i, (text, reason) in enumerate(zip(texts, reasons, strict=True))
    ]
    return Completion(
        id=f"cmpl-{uuid.uuid4().hex}", created=int(time.time()), model=model, object="text_completion",
        choices=choices, usage=usage,
    )  # fmt: skip


def _text_reason(raw: RawFinishReason) -> Any:
    reason = openai_finish_reason(raw)
    return reason if reason in ("stop", "length", "content_filter") else "stop"


def usage_of(prompt_tokens: int, completion_tokens: int) -> CompletionUsage:
    from openai.types import CompletionUsage

    return CompletionUsage(
        prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, total_tokens=prompt_tokens + completion_tokens
    )


def _merge_openai(answers: Sequence[Any], n: int) -> Any:
    """The first answer with the choices of all, numbered from 0, at most n, and the usage of all."""
    merged = answers[0]
    merged.choices = [choice for answer in answers for choice in answer.choices][:n]
    for index, choice in enumerate(merged.choices):
        choice.index = index
    usages = [answer.usage for answer in answers if answer.usage is not None]
    if len(usages) > 1:
        merged.usage = type(usages[0]).model_validate(_sum([usage.model_dump() for usage in usages]))
    return merged


def _sum(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All numbers added up, those of the details (reasoning tokens, a provider's cost) too."""
    total: dict[str, Any] = {}
    for name in dict.fromkeys(name for usage in usages for name in usage):
        values = [usage[name] for usage in usages if usage.get(name) is not None]
        if values and isinstance(values[0], Mapping):
            total[name] = _sum(values)
        else:
            total[name] = sum(values) if values and isinstance(values[0], int | float) else next(iter(values), None)
    return total


def _merge_tokens(answers: Sequence[TokenCompletion], n: int) -> TokenCompletion:
    # A server class of an author's may give a plain tuple of four.
    return TokenCompletion.of(
        answers[0][0],
        [tokens for answer in answers for tokens in answer[1]][:n],
        [logprobs for answer in answers for logprobs in answer[2]][:n],
        [reason for answer in answers for reason in answer[3]][:n],
        [version for answer in answers for version in weight_versions_of(answer)][:n],
    )


def _tell_openai(answer: Any) -> Told:
    usage = answer.usage
    return Told(
        prompt_tokens=(usage.prompt_tokens or 0) if usage else 0,
        completion_tokens=(usage.completion_tokens or 0) if usage else 0,
        finish_reasons=tuple(finish_word(choice.finish_reason) for choice in answer.choices),
        weight_version=weight_version_of(getattr(answer, "weight_version", None)),
    )


def _tell_tokens(answer: TokenCompletion) -> Told:
    prompt_tokens, output_tokens, _, finish_reasons = answer
    return Told(
        prompt_tokens=len(prompt_tokens),
        completion_tokens=sum(map(len, output_tokens)),
        finish_reasons=tuple(map(finish_word, finish_reasons)),
        weight_version=oldest(weight_versions_of(answer)),
    )


def _tell_logprobs(answer: Mapping[str, Any]) -> Told:
    return Told(prompt_tokens=len(answer["prompt_tokens"]))


def weight_version_of(raw: Any) -> int | None:
    """A policy version as a number. Servers send numbers, "8" or "v8"; anything else, such as "default", is None."""
    try:
        return int(str(raw).removeprefix("v"))
    except ValueError:
        return None


def weight_versions_of(answer: Any) -> tuple[int | None, ...]:
    """The policy version of each choice of a token completion, whoever made it."""
    versions: tuple[int | None, ...] = getattr(answer, "weight_versions", ())
    return versions or (None,) * len(answer[1])


def oldest(versions: Sequence[int | None]) -> int | None:
    known = [version for version in versions if version is not None]
    return min(known) if known else None


CHAT: Operation[Any] = Operation(
    "_chat_completion_wrapper", lambda answer: len(answer.choices), _merge_openai, _tell_openai
)
COMPLETION: Operation[Any] = Operation(
    "_completion_wrapper", lambda answer: len(answer.choices), _merge_openai, _tell_openai
)
TOKENS: Operation[TokenCompletion] = Operation(
    "_tokens_and_logprobs_completion_wrapper", lambda answer: len(answer[1]), _merge_tokens, _tell_tokens
)
LOGPROBS: Operation[dict[str, Any]] = Operation(
    "_get_logprobs_wrapper", lambda _: 1, lambda answers, _: answers[0], _tell_logprobs
)
