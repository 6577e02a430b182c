"""Advantages, clipping and metrics of GRPO, and the way from the wire to the arrays of an update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pydantic
import pytest

from atropos_tui.pocket.batches import ScoredGroup, TrainedSequence, sequences_of, training_batch
from atropos_tui.pocket.grpo import GrpoSettings, TrainingBatch, group_advantages, loss_and_gradient
from tests.pocket.small_policy import TURN

REACH = 12
PLAIN = GrpoSettings(entropy_bonus=0.0, uniform_bonus=0.0)


def scored_group(**changes: Any) -> ScoredGroup:
    """Two sequences after the same prompt of two tokens."""
    fields = {
        "tokens": [[3, TURN, 4, 0], [3, TURN, 5, 6, 0]],
        "masks": [[-100, -100, 4, 0], [-100, -100, 5, 6, 0]],
        "scores": [1.0, 0.0],
        "inference_logprobs": [[1.0, 1.0, -0.5, -0.25], [1.0, 1.0, -1.0, -2.0, -3.0]],
    }
    return ScoredGroup.model_validate(fields | changes)


def one_prediction(*, advantage: float, behaviour: float) -> TrainingBatch:
    """One trained token, id 1 of a vocabulary of two, which a uniform policy gives the logprob ln 1/2."""
    return TrainingBatch(
        tokens=np.array([[0, 1]]),
        positions=np.array([[0, 1]]),
        trained=np.ones((1, 1)),
        behaviour_logprobs=np.full((1, 1), behaviour),
        advantages=np.full((1, 1), advantage),
    )


def test_advantages_are_relative_to_the_group() -> None:
    advantages = group_advantages([0.0, 1.0, 1.0, 2.0], smallest_deviation=0.2)
    assert advantages == pytest.approx(np.array([-1.0, 0.0, 0.0, 1.0]) / np.sqrt(0.5))


def test_equal_scores_have_no_advantage_and_nearly_equal_ones_little() -> None:
    assert group_advantages([0.7, 0.7, 0.7], smallest_deviation=0.2) == pytest.approx(np.zeros(3))
    assert np.abs(group_advantages([0.70, 0.72], smallest_deviation=0.2)).max() == pytest.approx(0.05)


@pytest.mark.parametrize(("advantage", "behaviour"), [(1.0, -0.2), (-1.0, -1.2), (1.0, -0.8), (-1.0, -0.6)])
def test_a_gradient_step_makes_good_tokens_likelier_and_bad_ones_rarer(advantage: float, behaviour: float) -> None:
    batch = one_prediction(advantage=advantage, behaviour=behaviour)
    metrics, gradient = loss_and_gradient(np.zeros((1, 1, 2)), batch, PLAIN)
    assert metrics.clip_fraction == 0
    assert -gradient[0, 0, 1] * advantage > 0
    assert gradient.sum() == pytest.approx(0)


@pytest.mark.parametrize(("advantage", "behaviour"), [(1.0, -1.2), (-1.0, -0.2)])
def test_a_token_that_already_moved_too_far_is_clipped(advantage: float, behaviour: float) -> None:
    batch = one_prediction(advantage=advantage, behaviour=behaviour)
    metrics, gradient = loss_and_gradient(np.zeros((1, 1, 2)), batch, PLAIN)
    assert metrics.clip_fraction == 1
    assert not gradient.any()


def test_kl_and_entropy_are_those_of_the_trained_tokens() -> None:
    metrics, _ = loss_and_gradient(np.zeros((1, 1, 2)), one_prediction(advantage=0.0, behaviour=-0.5), PLAIN)
    assert metrics.entropy == pytest.approx(np.log(2))
    assert metrics.kl == pytest.approx(np.log(2) - 0.5)


def test_without_a_known_logprob_the_update_is_on_policy() -> None:
    metrics, gradient = loss_and_gradient(np.zeros((1, 1, 2)), one_prediction(advantage=1.0, behaviour=np.nan), PLAIN)
    assert metrics.kl == 0
    assert gradient[0, 0] == pytest.approx(np.array([0.5, -0.5]))


def test_the_uniform_bonus_pulls_at_a_token_however_rare_it_is() -> None:
    logits = np.array([[[0.0, 30.0]]])
    _, gradient = loss_and_gradient(logits, one_prediction(advantage=0.0, behaviour=np.nan), GrpoSettings())
    assert -gradient[0, 0, 0] == pytest.approx(GrpoSettings().uniform_bonus / 2, rel=1e-6)


def test_what_is_trained_is_aligned_with_the_predicted_token() -> None:
    sequences = sequences_of(scored_group(), smallest_deviation=0.2)
    batch = training_batch(sequences, TURN, REACH)
    assert batch.tokens.tolist() == [[3, TURN, 4, 0, 0], [3, TURN, 5, 6, 0]]
    assert batch.positions[0].tolist() == [REACH - 2, REACH - 1, REACH, REACH + 1, REACH + 2]
    assert batch.trained.tolist() == [[0, 1, 1, 0], [0, 1, 1, 1]]
    assert batch.behaviour_logprobs[1, 1:].tolist() == [-1.0, -2.0, -3.0]
    assert np.isnan(batch.behaviour_logprobs[:, 0]).all()
    assert batch.advantages[:, 1].tolist() == [1.0, -1.0]


def test_a_later_end_of_turn_in_a_reply_moves_no_position() -> None:
    unended = TrainedSequence([3, 4, TURN, 5], [False, False, True, True], [0.0] * 4, [0.0] * 4)
    assert training_batch([unended], TURN, REACH).positions[0, 1] == REACH - 1


def test_advantages_of_its_own_take_the_place_of_those_from_scores() -> None:
    own = [[0.0, 0.0, 2.0, 3.0], [0.0, 0.0, 4.0, 5.0, 6.0]]
    first, second = sequences_of(scored_group(advantages=own), smallest_deviation=0.2)
    assert [first.advantages, second.advantages] == own


def test_an_override_sets_the_advantage_to_zero() -> None:
    overrides = [None, {"set_advantage_to_zero": True}]
    first, second = sequences_of(scored_group(overrides=overrides), smallest_deviation=0.2)
    assert any(first.advantages)
    assert not any(second.advantages)


def test_a_group_may_come_without_logprobs() -> None:
    for sequence in sequences_of(scored_group(inference_logprobs=None), smallest_deviation=0.2):
        assert np.isnan(sequence.logprobs).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": [1.0]},
        {"scores": [1.0, float("nan")]},
        {"masks": [[-100, -100, 4, 0], [-100, -100, 5, 6]]},
        {"inference_logprobs": [[-1.0], [-1.0]]},
        {"overrides": [None]},
    ],
)
def test_lists_that_do_not_fit_together_are_no_group(changes: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        scored_group(**changes)
