"""What a group contains: the rollouts with their tokens, masks, logprobs and messages.

Contents are large and travel beside the events, by reference: whoever keeps one packs it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Rollout:
    """One scored completion.

    `tokens`, `masks`, `logprobs` and `advantages` have one entry a token; a mask of -100 means not trained on, and a
    logprob of exactly 1.0 stands where the token was not sampled (wire contract of the trajectory API). Empty where
    the environment gave none. `messages` are in OpenAI's format. `parts` are the named parts of the score, if told.
    `ref_logprobs` are those that a reference or teacher gives to the same tokens, 1.0 where it tells none.
    """

    score: float | None
    tokens: Sequence[int] = ()
    masks: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    advantages: Sequence[float] = ()
    messages: Sequence[Mapping[str, Any]] = ()
    finish_reason: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    ref_logprobs: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class GroupContent:
    """All that is known of one group's content. `item` is the environment's item, printed and bounded in length."""

    group_id: int
    item: str
    rollouts: tuple[Rollout, ...]
