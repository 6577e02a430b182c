"""From what the trajectory API hands out to the arrays of one update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atropos_tui.pocket.grpo import TrainingBatch, group_advantages
from atropos_tui.pocket.positions import anchor_of, positions_of

MASKED = -100


@dataclass(frozen=True, slots=True)
class TrainedSequence:
    """One rollout, an entry a token: ids, whether trained on, the sampler's logprobs (NaN: unknown), advantages."""

    tokens: list[int]
    trained: list[bool]
    logprobs: list[float]
    advantages: list[float]


def sequences_of(group: Mapping[str, Any], smallest_deviation: float) -> list[TrainedSequence]:
    """The rollouts of one group, as `/batch` gives it. Advantages of its own count; those of overrides become zero."""
    relative = group_advantages(group["scores"], smallest_deviation)
    given, overrides, logprobs = group.get("advantages"), group.get("overrides"), group.get("inference_logprobs")
    sequences = []
    for index, (tokens, masks) in enumerate(zip(group["tokens"], group["masks"], strict=True)):
        advantages = list(given[index]) if given else [float(relative[index])] * len(tokens)
        if overrides and (overrides[index] or {}).get("set_advantage_to_zero"):
            advantages = [0.0] * len(tokens)
        trained = [mask != MASKED for mask in masks]
        sampled = list(logprobs[index]) if logprobs else [float("nan")] * len(tokens)
        sequences.append(TrainedSequence(list(tokens), trained, sampled, advantages))
    return sequences


def training_batch(sequences: Sequence[TrainedSequence], turn_token: int, reach: int) -> TrainingBatch:
    """Pad sequences on the right to the longest; what concerns predictions is shifted to the predicted token."""
    width = max(len(sequence.tokens) for sequence in sequences)
    tokens = np.zeros((len(sequences), width), np.int64)
    positions = np.zeros((len(sequences), width), np.int64)
    trained = np.zeros((len(sequences), width), np.float32)
    logprobs = np.zeros((len(sequences), width), np.float32)
    advantages = np.zeros((len(sequences), width), np.float32)
    for row, sequence in enumerate(sequences):
        length = len(sequence.tokens)
        tokens[row, :length] = sequence.tokens
        positions[row] = positions_of(width, anchor_of(sequence.tokens, turn_token), reach)
        trained[row, :length] = sequence.trained
        logprobs[row, :length] = sequence.logprobs
        advantages[row, :length] = sequence.advantages
    return TrainingBatch(tokens, positions, trained[:, 1:], logprobs[:, 1:], advantages[:, 1:])
