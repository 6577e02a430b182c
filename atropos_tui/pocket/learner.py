"""The policy with its optimiser: one GRPO update at a time on what environments have scored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pydantic

from atropos_tui.pocket.adam import Adam
from atropos_tui.pocket.batches import ScoredGroup, sequences_of, training_batch
from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.grpo import GrpoMetrics, GrpoSettings, loss_and_gradient
from atropos_tui.pocket.policy import Parameters, Policy, PolicyShape, initial_parameters

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did; nothing where it says None, because the batch had nothing that could be trained on."""

    mean_score: float | None
    metrics: GrpoMetrics | None
    gradient_norm: float | None
    unusable_groups: int


class Learner:
    """Owns the weights. `update` is to be called by one thread at a time."""

    def __init__(self, seed: int, learning_rate: float, settings: GrpoSettings | None = None) -> None:
        self._characters = Characters()
        self._settings = settings or GrpoSettings()
        shape = PolicyShape(vocabulary=self._characters.size)
        self.policy = Policy(shape, initial_parameters(shape, seed))
        self._adam = Adam(self.policy.parameters, learning_rate)

    def update(self, groups: Sequence[dict[str, Any]]) -> Update:
        """One step on a batch of groups as `/batch` gives them. Groups that don't fit this policy are left out."""
        usable = [group for group in map(self._usable, groups) if group is not None]
        unusable = len(groups) - len(usable)
        deviation = self._settings.smallest_deviation
        sequences = [sequence for group in usable for sequence in sequences_of(group, deviation)]
        if not any(any(sequence.trained[1:]) for sequence in sequences):
            return Update(None, None, None, unusable)
        batch = training_batch(sequences, self._characters.turn, self.policy.shape.reach)
        logits, activations = self.policy.forward(batch.tokens[:, :-1], batch.positions[:, :-1])
        metrics, gradient = loss_and_gradient(logits, batch, self._settings)
        norm = self._adam.step(self.policy.backward(gradient, activations))
        mean_score = fmean(score for group in usable for score in group.scores)
        return Update(mean_score, metrics, norm, unusable)

    def state(self) -> Parameters:
        """Weights and state of the optimiser, by name; the arrays themselves, which `update` changes."""
        return self.policy.parameters | self._adam.state()

    def restore(self, state: Parameters) -> None:
        """Go on from what `state` gave."""
        for name, value in self.policy.parameters.items():
            value[...] = state[name]
        self._adam.restore(state)

    def _usable(self, fields: dict[str, Any]) -> ScoredGroup | None:
        try:
            group = ScoredGroup.model_validate(fields)
            self._check(group)
        except ValueError as error:
            first = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else error
            logger.warning("a group cannot be trained on: %s", first)
            return None
        return group

    def _check(self, group: ScoredGroup) -> None:
        if any(not 0 <= token < self._characters.size for tokens in group.tokens for token in tokens):
            raise ValueError(f"it has token ids outside the vocabulary of {self._characters.size}")
        if any(len(tokens) > self.policy.shape.positions for tokens in group.tokens):
            raise ValueError(f"it has sequences of more than {self.policy.shape.positions} tokens")
