"""GRPO: the clipped policy-gradient loss on group-relative advantages, and its gradient with respect to the logits.

Group Relative Policy Optimization: DeepSeekMath, arXiv 2402.03300. The clipped ratio: PPO, arXiv 1707.06347.
Shapes: B sequences, T predicted positions, V tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from atropos_tui.pocket.layers import Array, Tokens, log_softmax


@dataclass(frozen=True, slots=True)
class GrpoSettings:
    """`clip` bounds how far one update may move a token's probability ratio.

    `entropy_bonus` rewards undecided predictions. `uniform_bonus` rewards a low KL(uniform ‖ policy): its pull does not
    vanish with a token's probability, so that no token ever becomes too rare to be tried again when the task changes.
    `smallest_deviation` keeps groups whose scores hardly differ from weighing as much as those that tell more.
    """

    clip: float = 0.2
    entropy_bonus: float = 0.01
    uniform_bonus: float = 0.015
    smallest_deviation: float = 0.2


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """Sequences of one update, padded on the right. What concerns predictions is aligned with the predicted token."""

    tokens: Tokens  # (B, T + 1)
    positions: Tokens  # (B, T + 1)
    trained: Array  # (B, T), 1 where the predicted token was sampled by the policy, else 0
    behaviour_logprobs: Array  # (B, T), of the policy that sampled; NaN where it isn't known
    advantages: Array  # (B, T)


@dataclass(frozen=True, slots=True)
class GrpoMetrics:
    """Means over the trained tokens; `kl` estimates KL(inference policy ‖ trained policy), in nats like `entropy`."""

    loss: float
    entropy: float
    kl: float
    clip_fraction: float


def group_advantages(scores: Sequence[float], smallest_deviation: float) -> Array:
    """(score - mean) / standard deviation within a group; zeros when all scores are equal."""
    values = np.asarray(scores, np.float64)
    advantages: Array = (values - values.mean()) / max(float(values.std()), smallest_deviation)
    return advantages


def loss_and_gradient(logits: Array, batch: TrainingBatch, settings: GrpoSettings) -> tuple[GrpoMetrics, Array]:
    """Metrics, and the gradient of the loss with respect to the logits (B, T, V).

    The loss is the mean over trained tokens of -min(r A, clip(r) A) - entropy bonus - uniform bonus, where r is the
    ratio of the token's probability now to that when it was sampled.
    """
    trained, advantages = batch.trained, batch.advantages
    share = trained / max(float(trained.sum()), 1.0)
    targets = batch.tokens[:, 1:, None]

    logprobs = log_softmax(logits)
    probabilities = np.exp(logprobs)
    target_logprobs = np.take_along_axis(logprobs, targets, axis=-1)[..., 0]
    behaviour = np.where(np.isnan(batch.behaviour_logprobs), target_logprobs, batch.behaviour_logprobs)
    log_ratio = np.where(trained > 0, target_logprobs - behaviour, 0.0)
    ratio = np.exp(np.clip(log_ratio, -20.0, 20.0))

    clipped = np.where(advantages >= 0, ratio > 1.0 + settings.clip, ratio < 1.0 - settings.clip)
    surrogate = np.minimum(ratio * advantages, np.clip(ratio, 1.0 - settings.clip, 1.0 + settings.clip) * advantages)
    entropy = -(probabilities * logprobs).sum(axis=-1)
    uniform = logprobs.mean(axis=-1)

    objective = surrogate + settings.entropy_bonus * entropy + settings.uniform_bonus * uniform
    metrics = GrpoMetrics(
        loss=-float((share * objective).sum()),
        entropy=float((share * entropy).sum()),
        kl=-float((share * log_ratio).sum()),
        clip_fraction=float((share * clipped).sum()),
    )

    # With p the probabilities: d logprob(token) = onehot(token) - p, d entropy = -p (logprobs + entropy),
    # d mean logprob = 1/V - p, each with respect to the logits.
    pull = np.where(clipped, 0.0, ratio * advantages)[..., None]
    gradient = (
        pull * probabilities
        + settings.entropy_bonus * probabilities * (logprobs + entropy[..., None])
        + settings.uniform_bonus * (probabilities - 1.0 / logits.shape[-1])
    )
    at_target = np.take_along_axis(gradient, targets, axis=-1) - pull
    np.put_along_axis(gradient, targets, at_target, axis=-1)
    return metrics, (gradient * share[..., None]).astype(logits.dtype)
