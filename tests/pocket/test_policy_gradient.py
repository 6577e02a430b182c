"""The hand-derived gradient of the whole loss, through every layer, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from atropos_tui.pocket.grpo import GrpoSettings, TrainingBatch, loss_and_gradient
from atropos_tui.pocket.policy import Policy, PolicyShape, initial_parameters
from tests.pocket.small_policy import disturbed_policy

SETTINGS = GrpoSettings(entropy_bonus=0.05, uniform_bonus=0.07)
STEP = 1e-6


def batch_for(policy: Policy) -> TrainingBatch:
    """Three sequences with prompts and padding; the tokens were sampled by a policy that is somewhat different."""
    random = np.random.default_rng(5)
    tokens = random.integers(0, policy.shape.vocabulary, (3, 7))
    positions = np.tile(np.arange(7), (3, 1)) + np.array([[3], [5], [4]])
    trained = np.array([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0]], np.float64)
    behaviour = random.uniform(-3.0, -1.0, (3, 6))
    return TrainingBatch(tokens, positions, trained, behaviour, random.standard_normal((3, 6)))


def loss_of(policy: Policy, batch: TrainingBatch) -> float:
    logits, _ = policy.forward(batch.tokens[:, :-1], batch.positions[:, :-1])
    metrics, _ = loss_and_gradient(logits, batch, SETTINGS)
    return metrics.loss


@pytest.fixture(scope="module")
def policy() -> Policy:
    return disturbed_policy(dtype=np.float64)


@pytest.mark.parametrize("name", initial_parameters(PolicyShape(vocabulary=8), seed=0))
def test_the_gradient_is_what_finite_differences_say(policy: Policy, name: str) -> None:
    batch = batch_for(policy)
    logits, activations = policy.forward(batch.tokens[:, :-1], batch.positions[:, :-1])
    metrics, grad_logits = loss_and_gradient(logits, batch, SETTINGS)
    assert 0 < metrics.clip_fraction < 1
    gradient = policy.backward(grad_logits, activations)[name]
    parameter = policy.parameters[name]
    assert gradient.shape == parameter.shape

    # The entries with the largest gradients, and some others.
    largest = np.argsort(-np.abs(gradient.ravel()))[:4]
    others = np.random.default_rng(0).integers(0, parameter.size, 4)
    for index in (*largest, *others):
        kept = parameter.flat[index]
        parameter.flat[index] = kept + STEP
        above = loss_of(policy, batch)
        parameter.flat[index] = kept - STEP
        below = loss_of(policy, batch)
        parameter.flat[index] = kept
        assert gradient.flat[index] == pytest.approx((above - below) / (2 * STEP), rel=1e-5, abs=1e-8)


def test_a_fresh_policy_is_exactly_uniform() -> None:
    shape = PolicyShape(vocabulary=29)
    policy = Policy(shape, initial_parameters(shape, seed=3))
    logits, _ = policy.forward(np.array([[3, 4, 2]]), np.array([[29, 30, 31]]))
    assert not logits.any()
