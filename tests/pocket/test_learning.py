"""The policy really learns: sampler, advantages, gradient and optimiser together, on a tiny task."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.learner import Learner
from atropos_tui.pocket.sampling import SamplingRequest, sample

LETTERS = "abcd"
GROUPS, GROUP_SIZE = 8, 8


def play(learner: Learner, characters: Characters, random: np.random.Generator) -> list[dict[str, Any]]:
    """Groups for the task of repeating two letters, scored by the share of places that are right."""
    texts = ["".join(random.choice(list(LETTERS), 2)) for _ in range(GROUPS)]
    prompts = [characters.encode(f"{text}>") for text in texts]
    requests = [SamplingRequest(tuple(prompt), GROUP_SIZE, max_tokens=4) for prompt in prompts]
    groups = []
    for text, prompt, samples in zip(
        texts, prompts, sample(learner.policy, requests, characters.end, characters.turn, random), strict=True
    ):
        replies = [characters.decode(one.tokens) for one in samples]
        groups.append(
            {
                "tokens": [prompt + one.tokens for one in samples],
                "masks": [[-100] * len(prompt) + one.tokens for one in samples],
                "inference_logprobs": [[1.0] * len(prompt) + one.logprobs for one in samples],
                "scores": [
                    sum(a == b for a, b in zip(text, reply, strict=False)) / max(len(text), len(reply))
                    for reply in replies
                ],
            }
        )
    return groups


def test_a_few_steps_of_grpo_bring_luck_to_mastery() -> None:
    learner, characters, random = Learner(seed=0, learning_rate=3e-3), Characters(), np.random.default_rng(0)
    means = []
    for _ in range(120):
        update = learner.update(play(learner, characters, random))
        assert update.unusable_groups == 0
        assert update.mean_score is not None
        means.append(update.mean_score)
    assert fmean(means[:5]) < 0.1
    assert fmean(means[-10:]) > 0.8


def test_a_batch_of_unusable_groups_changes_nothing() -> None:
    learner = Learner(seed=0, learning_rate=3e-3)
    before = {name: value.copy() for name, value in learner.policy.parameters.items()}
    foreign = {"tokens": [[3, 99999]], "masks": [[-100, 99999]], "scores": [1.0]}
    too_long = {"tokens": [[3] * 65], "masks": [[3] * 65], "scores": [1.0]}
    update = learner.update([foreign, too_long, {"tokens": [[3]]}])
    assert (update.unusable_groups, update.metrics, update.mean_score) == (3, None, None)
    for name, value in learner.policy.parameters.items():
        assert np.array_equal(value, before[name])
