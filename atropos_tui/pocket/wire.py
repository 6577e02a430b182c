"""The bodies of requests that the pocket server takes: OpenAI's, and vLLM's `/generate`. Unknown keys are ignored."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=128)]
TokenCount = Annotated[int, Field(ge=1)]


class SamplingFields(BaseModel):
    """What all of them have. `logprobs` 0 or more asks for the sampled tokens' logprobs."""

    model_config = ConfigDict(extra="ignore")

    n: Count | None = None
    max_tokens: TokenCount | None = None
    temperature: Annotated[float, Field(ge=0.0)] | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None


class PromptTokens(BaseModel):
    """vLLM's way to say a prompt in ids."""

    prompt_token_ids: list[int]


class GenerateRequest(SamplingFields):
    """`POST /generate`, as the vLLM server of the Atropos ecosystem takes it."""

    prompt: str | PromptTokens
    logprobs: int | None = None
    prompt_logprobs: int | None = None


class CompletionRequest(SamplingFields):
    """`POST /v1/completions`; `return_token_ids` is stock vLLM's."""

    model: str = ""
    prompt: str | list[int]
    logprobs: int | None = None
    return_token_ids: bool = False


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | None = None


class ChatRequest(SamplingFields):
    """`POST /v1/chat/completions`."""

    model: str = ""
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_completion_tokens: TokenCount | None = None
    logprobs: bool | None = None
    return_token_ids: bool = False


class UpdateWeightsRequest(BaseModel):
    """`POST /update_weights`: the path of an npz file with one array a parameter."""

    path: str
    weight_version: Annotated[int, Field(ge=0)]


def one_line(errors: list[Any]) -> str:
    """The first of pydantic's errors: where, and what is wrong."""
    first = errors[0]
    place = ".".join(map(str, first["loc"])) or "body"
    return f"{place}: {first['msg']}"
