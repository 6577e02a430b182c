"""Requests to the inference server, by the names of OpenAI and vLLM, and its errors in OpenAI's shape.

Fields that a policy of this size has no use for are ignored, as vLLM ignores what it doesn't know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from atropos_tui.errors import AtroposError

MOST_SAMPLES = 128
MOST_LOGPROBS = 20


class RequestError(AtroposError):
    """A request that can't be served: its HTTP status, and the field that is wrong."""

    def __init__(self, fault: str, *, status: int = 400, param: str | None = None) -> None:
        self.status = status
        self.param = param
        super().__init__(fault)

    @property
    def body(self) -> dict[str, Any]:
        kind = "NotFoundError" if self.status == 404 else "BadRequestError"
        return error_body(str(self), kind, self.param, self.status)


def error_body(message: str, kind: str, param: str | None, status: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


class Request(BaseModel):
    """A null is as good as a field left out."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if value is not None}


class Sampling(Request):
    """What all three ways of asking for tokens have in common."""

    n: int = Field(1, ge=1, le=MOST_SAMPLES)
    max_tokens: int | None = Field(None, ge=1)
    temperature: float = Field(1.0, ge=0.0, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    stop: str | list[str] = []
    stream: Literal[False] = False

    @property
    def stops(self) -> list[str]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        return [stop for stop in stops if stop]


class OpenAISampling(Sampling):
    model: str | None = None
    return_token_ids: bool = False
    return_tokens_as_token_ids: bool = False


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class ChatMessage(Request):
    role: str
    content: str | list[TextPart] = ""

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatRequest(OpenAISampling):
    messages: list[ChatMessage] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=MOST_LOGPROBS)


class CompletionRequest(OpenAISampling):
    prompt: str | list[int] | list[str] | list[list[int]]
    max_tokens: int = Field(16, ge=1)
    logprobs: int | None = Field(None, ge=0, le=MOST_LOGPROBS)
    echo: Literal[False] = False


class TokensPrompt(BaseModel):
    prompt_token_ids: list[int]


class GenerateRequest(Sampling):
    """The native route of upstream's patched vLLM server."""

    prompt: str | TokensPrompt
    max_tokens: int = Field(16, ge=1)
    logprobs: int | None = Field(None, ge=0, le=MOST_LOGPROBS)
    prompt_logprobs: int | None = Field(None, ge=0, le=MOST_LOGPROBS)


class WeightsRequest(Request):
    """New weights from a file that the server can read; `weight_version` is one more than the last if left out."""

    path: Path
    weight_version: int | None = Field(None, ge=0)
