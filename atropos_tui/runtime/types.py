"""What environments and the runtime hand each other: items, messages and scored groups."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

Item: TypeAlias = Any
number: TypeAlias = int | float
UUID: TypeAlias = str
Content: TypeAlias = str | list[dict[str, Any]]


class Message(TypedDict, total=False):
    """One message in OpenAI's format; `role` and `content` are required on the wire, further keys are kept."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Content
    reward: float | None
    name: str
    tool_calls: list[dict[str, Any]]


class ScoredDataItem(TypedDict, total=False):
    """One rollout with its score; `tokens`, `masks` and `scores` are required.

    Lists have one entry a token. A mask is -100 where the token is not trained on and the token's id elsewhere;
    `inference_logprobs` are exactly 1.0 where the token was not sampled. `distill_*` are [position][top_k].
    `score_parts`, what the score is made of by name, and `finish_reasons`, a word, are shown and not sent.
    """

    tokens: list[int]
    masks: list[int]
    scores: float
    advantages: list[float] | None
    ref_logprobs: list[float] | None
    inference_logprobs: list[float] | None
    messages: list[Message] | None
    group_overrides: dict[str, Any] | None
    overrides: dict[str, Any] | None
    images: Any
    distill_token_ids: list[list[int]] | None
    distill_logprobs: list[list[float]] | None
    score_parts: dict[str, float] | None
    finish_reasons: str | None


class ScoredDataGroup(TypedDict, total=False):
    """The rollouts of one item, as the trainer gets them; `tokens`, `masks` and `scores` are required.

    Each list has one entry a rollout, which is what `ScoredDataItem` has under the same name.
    """

    tokens: list[list[int]]
    masks: list[list[int]]
    scores: list[float]
    advantages: list[list[float]] | None
    ref_logprobs: list[list[float]] | None
    inference_logprobs: list[list[float]] | None
    messages: list[list[Message]] | None
    generation_params: dict[str, Any] | None
    group_overrides: dict[str, Any] | None
    overrides: list[dict[str, Any]] | None
    images: Any
    distill_token_ids: list[list[list[int]]] | None
    distill_logprobs: list[list[list[float]]] | None
    score_parts: list[dict[str, float]] | None
    finish_reasons: list[str] | None


Groups: TypeAlias = ScoredDataGroup | list[ScoredDataGroup | None] | None


class AgentStep(TypedDict, total=False):
    """One step of one agent: its messages and the reward it got."""

    step: int
    messages: list[Message]
    reward: float


AgentHistory: TypeAlias = dict[str, list[AgentStep]]


class Observation(TypedDict):
    """What an agent sees: the raw observation, and the text or content parts a model reads."""

    raw: dict[str, Any]
    rendered: Content


class GameStep(TypedDict):
    """State, action and reward of one step of a game; `reward` may be given by agent."""

    step: int
    agent_id: str
    observation: Observation
    action: str
    reward: float | dict[str, float]
    done: bool
    info: dict[str, Any]


GameHistory: TypeAlias = list[GameStep]
