"""What an environment says about its inference servers: upstream's names and defaults; extra keywords are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

ServerType = Literal["openai", "trl", "sglang", "vllm"]


class ServerBaseline(BaseModel):
    """Settings for servers that are found rather than named: local ports 9004-9007, or the nodes of a SLURM job."""

    # `model_name` is a field's name that everybody uses; pydantic would warn about its prefix.
    model_config = ConfigDict(protected_namespaces=())

    timeout: int = Field(default=1200, description="Seconds a request may take, its retries included.")
    num_max_requests_at_once: int = Field(
        default=512, description="Requests in flight at once, for training. A request may ask for n completions."
    )
    num_requests_for_eval: int = Field(default=64, description="Requests in flight at once, for evaluation.")
    model_name: str = Field(default="default", description="The model to ask for.")
    rolling_buffer_length: int = Field(default=1000, description="How many of the newest requests metrics describe.")
    server_type: ServerType = Field(default="openai", description="What kind of server it is.")
    tokenizer_name: str = Field(default="none", description='The tokenizer; "none" means that of `model_name`.')


class APIServerConfig(ServerBaseline):
    """One inference server."""

    api_key: str | None = Field(default="", description="Sent as a bearer token when not empty.")
    base_url: str | None = Field(default="", description="Address, normally ending in /v1.")
    n_kwarg_is_ignored: bool = Field(
        default=False, description="The server gives one completion whatever n is; found out when not told."
    )
    health_check: bool = Field(
        default=True, description="Whether a server that fails is held back until a probe answers."
    )


class ServerManagerConfig(BaseModel):
    """Settings of all servers together."""

    slurm: bool = Field(default=False, description="Find the servers on the nodes of the SLURM job.")
    testing: bool = Field(default=False, description="Use an offline stand-in instead of servers.")
    max_n_completions: int = Field(
        default=8, description="Completions asked for in one request; a larger n is spread over several."
    )
    proxy_url: str | None = Field(default=None, description="Address of a managed-server proxy.")


@dataclass
class ReasoningConfig:
    """How much a reasoning model shall think; given effort or tokens switch it on.

    Raises ValueError for an effort that is none of `EFFORTS`.
    """

    EFFORTS: ClassVar[tuple[str, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh")

    # OpenRouter's shares of a 32k budget (its reasoning-tokens guide), for providers that only know token limits.
    EFFORT_TO_MAX_TOKENS: ClassVar[dict[str, int]] = {
        "none": 1024, "minimal": 3200, "low": 6400, "medium": 16000, "high": 25600, "xhigh": 30400,
    }  # fmt: skip

    enabled: bool = False
    effort: str | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.effort is not None and self.effort not in self.EFFORTS:
            raise ValueError(f"Invalid reasoning_effort: {self.effort}. Must be one of: {', '.join(self.EFFORTS)}")
        self.enabled = self.enabled or self.effort is not None or self.max_tokens is not None

    @classmethod
    def from_env_config(cls, env_config: Any) -> ReasoningConfig:
        """What `thinking_mode`, `reasoning_effort` and `max_reasoning_tokens` of an environment's config ask for."""
        return cls(
            enabled=bool(getattr(env_config, "thinking_mode", False)),
            effort=getattr(env_config, "reasoning_effort", None),
            max_tokens=getattr(env_config, "max_reasoning_tokens", None),
        )

    def is_reasoning_kwargs_active(self) -> bool:
        return self.enabled

    def build_extra_body(self, base_url: str | None = None, use_max_tokens: bool = False) -> dict[str, Any] | None:
        """What the request body carries in addition; None when reasoning is off. Effort wins over a token limit."""
        if not self.enabled:
            return None
        if is_openai_itself(base_url):
            return {"reasoning_effort": self.effort or "medium"}
        reasoning: dict[str, Any] = {"enabled": True}
        if self.effort is not None and use_max_tokens:
            reasoning["max_tokens"] = self.EFFORT_TO_MAX_TOKENS[self.effort]
        elif self.effort is not None:
            reasoning["effort"] = self.effort
        elif self.max_tokens is not None:
            reasoning["max_tokens"] = self.max_tokens
        return {"reasoning": reasoning}

    def added_to(self, arguments: dict[str, Any], base_url: str | None) -> dict[str, Any]:
        """A chat request's arguments with what this config asks for; unchanged when reasoning is off."""
        extra = self.build_extra_body(base_url)
        if extra is None:
            return arguments
        added = {**arguments, "extra_body": {**(arguments.get("extra_body") or {}), **extra}}
        if is_openai_itself(base_url):
            # OpenAI's reasoning models refuse other temperatures and the older name of the limit.
            added["temperature"] = 1.0
            if added.get("max_tokens"):
                added["max_completion_tokens"] = added.pop("max_tokens")
        return added


def is_openai_itself(base_url: str | None) -> bool:
    return "api.openai.com" in (base_url or "")
