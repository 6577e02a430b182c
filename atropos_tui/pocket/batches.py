"""From the scored groups that the trajectory API hands out to the arrays of one update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, FiniteFloat, model_validator

from atropos_tui.pocket.grpo import TrainingBatch, group_advantages
from atropos_tui.pocket.positions import anchor_of, positions_of

MASKED = -100


class ScoredGroup(BaseModel):
    """What is trained on of a group, one list a sequence; wire contract of atroposlib 0.4.0's `/batch`.

    `masks` are -100 where a token is not trained on. `inference_logprobs` are 1.0 there, and may be missing.
    `advantages`, one number a token, take the place of those from the scores.
    """

    tokens: list[list[int]]
    masks: list[list[int]]
    scores: list[FiniteFloat]
    advantages: list[list[FiniteFloat]] | None = None
    inference_logprobs: list[list[FiniteFloat]] | None = None
    overrides: list[dict[str, Any] | None] | None = None

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        for name in ("masks", "scores", "advantages", "inference_logprobs", "overrides"):
            values = getattr(self, name)
            if values is None:
                continue
            if len(values) != len(self.tokens):
                raise ValueError(f"{name} of {len(values)} sequences for tokens of {len(self.tokens)}")
            if name not in ("scores", "overrides") and list(map(len, values)) != list(map(len, self.tokens)):
                raise ValueError(f"{name} are not as long as tokens")
        return self


@dataclass(frozen=True, slots=True)
class TrainedSequence:
    """One rollout, with one entry a token in each list; a logprob that isn't known is NaN."""

    tokens: list[int]
    trained: list[bool]
    logprobs: list[float]
    advantages: list[float]

    @property
    def prompt(self) -> list[int]:
        """The tokens before the first one that is trained on."""
        return self.tokens[: self.trained.index(True)] if True in self.trained else self.tokens


def sequences_of(group: ScoredGroup, smallest_deviation: float) -> list[TrainedSequence]:
    """The rollouts of one group, with advantages relative to the group unless it brings its own."""
    relative = group_advantages(group.scores, smallest_deviation)
    sequences = []
    for index, tokens in enumerate(group.tokens):
        advantages = [float(relative[index])] * len(tokens) if group.advantages is None else group.advantages[index]
        override = (group.overrides[index] if group.overrides else None) or {}
        if override.get("set_advantage_to_zero"):
            advantages = [0.0] * len(tokens)
        logprobs = [1.0] * len(tokens) if group.inference_logprobs is None else group.inference_logprobs[index]
        sequences.append(
            TrainedSequence(
                tokens,
                trained=[mask != MASKED for mask in group.masks[index]],
                logprobs=[logprob if logprob <= 0.0 else float("nan") for logprob in logprobs],
                advantages=advantages,
            )
        )
    return sequences


def training_batch(sequences: Sequence[TrainedSequence], turn_token: int, reach: int) -> TrainingBatch:
    """Sequences padded on the right to the longest; what concerns predictions is aligned with the predicted token."""
    width = max(len(sequence.tokens) for sequence in sequences)
    shape = (len(sequences), width)
    tokens, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    trained, advantages = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    logprobs = np.full(shape, np.nan, np.float32)
    for row, sequence in enumerate(sequences):
        length = len(sequence.tokens)
        tokens[row, :length] = sequence.tokens
        positions[row] = positions_of(width, anchor_of(sequence.prompt, turn_token), reach)
        trained[row, :length] = sequence.trained
        logprobs[row, :length] = sequence.logprobs
        advantages[row, :length] = sequence.advantages
    return TrainingBatch(tokens, positions, trained[:, 1:], logprobs[:, 1:], advantages[:, 1:])
