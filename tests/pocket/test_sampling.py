"""The sampler with its cache: the same probabilities as the training forward, and the limits it was given."""

from __future__ import annotations

import numpy as np
import pytest

from atropos_tui.pocket.layers import log_softmax
from atropos_tui.pocket.policy import Policy
from atropos_tui.pocket.positions import anchor_of, positions_of
from atropos_tui.pocket.sampling import Sample, SamplingRequest, prompt_logprobs, sample
from tests.pocket.small_policy import END, TURN, disturbed_policy

# Different lengths, one without an end of a turn, one with two.
PROMPTS = [(3, 4, TURN), (5, TURN), (7, 3, 3, 4, 5, TURN), (3, 5), (3, TURN, 4, END, 6, TURN)]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return disturbed_policy(seed=2)


def sample_all(policy: Policy, *requests: SamplingRequest, seed: int = 0) -> list[list[Sample]]:
    return sample(policy, requests, END, TURN, np.random.default_rng(seed))


def forward_logprobs(policy: Policy, prompt: tuple[int, ...], completion: list[int]) -> np.ndarray:
    """Logprobs of the completion's tokens by one pass over the whole sequence, as in training."""
    sequence = [*prompt, *completion]
    positions = positions_of(len(sequence), anchor_of(prompt, TURN), policy.shape.reach)
    logits, _ = policy.forward(np.array([sequence[:-1]]), positions[None, :-1])
    places = np.arange(len(prompt) - 1, len(sequence) - 1)
    return log_softmax(logits[0, places])[np.arange(len(completion)), completion]


def test_logprobs_of_samples_are_those_of_the_training_forward(policy: Policy) -> None:
    requests = [SamplingRequest(prompt, n=3, max_tokens=5) for prompt in PROMPTS]
    sampled = 0
    for request, samples in zip(requests, sample_all(policy, *requests), strict=True):
        assert len(samples) == 3
        for one in samples:
            assert one.logprobs == pytest.approx(forward_logprobs(policy, request.prompt, one.tokens), abs=1e-5)
            sampled += len(one.tokens)
    assert sampled > len(PROMPTS) * 3


def test_a_prompt_is_sampled_the_same_beside_longer_ones(policy: Policy) -> None:
    greedy = [SamplingRequest(prompt, max_tokens=6, temperature=0.0) for prompt in PROMPTS]
    together = sample_all(policy, *greedy)
    alone = [sample_all(policy, request)[0] for request in greedy]
    assert [one.tokens for (one,) in together] == [one.tokens for (one,) in alone]


def test_temperature_zero_takes_the_likeliest_token(policy: Policy) -> None:
    ((one,),) = sample_all(policy, SamplingRequest((3, 4, TURN), max_tokens=4, temperature=0.0))
    assert one.tokens == one.all_logprobs.argmax(axis=-1).tolist()


def test_a_small_top_p_leaves_only_the_likeliest_token(policy: Policy) -> None:
    nucleus, greedy = sample_all(
        policy,
        SamplingRequest((3, 4, TURN), n=8, max_tokens=4, top_p=1e-6),
        SamplingRequest((3, 4, TURN), n=1, max_tokens=4, temperature=0.0),
    )
    assert {tuple(one.tokens) for one in nucleus} == {tuple(greedy[0].tokens)}


def test_tokens_come_as_often_as_the_policy_says(policy: Policy) -> None:
    (samples,) = sample_all(policy, SamplingRequest((3, 4, TURN), n=4000, max_tokens=1))
    counts = np.bincount([one.tokens[0] for one in samples], minlength=policy.shape.vocabulary)
    probabilities = np.exp(samples[0].all_logprobs[0].astype(np.float64))
    deviation = np.sqrt(4000 * probabilities * (1 - probabilities))
    assert (np.abs(counts - 4000 * probabilities) < 4 * deviation + 1).all()


def test_a_sample_ends_with_the_end_token_or_at_its_own_limit(policy: Policy) -> None:
    requests = [SamplingRequest((3, TURN), n=64, max_tokens=2), SamplingRequest((3, TURN), n=64, max_tokens=7)]
    for request, samples in zip(requests, sample_all(policy, *requests), strict=True):
        lengths = {len(one.tokens) for one in samples}
        assert max(lengths) == request.max_tokens
        for one in samples:
            assert END not in one.tokens[:-1]
            assert len(one.tokens) == request.max_tokens or one.tokens[-1] == END
            assert len(one.all_logprobs) == len(one.tokens)
    assert len(lengths) > 1


def test_the_same_seed_gives_the_same_samples(policy: Policy) -> None:
    request = SamplingRequest((3, 4, TURN), n=4, max_tokens=6)
    first, again, other = (sample_all(policy, request, seed=seed)[0] for seed in (1, 1, 2))
    assert [one.tokens for one in first] == [one.tokens for one in again]
    assert [one.tokens for one in first] != [one.tokens for one in other]


def test_logprobs_of_a_prompt_are_those_of_sampling_it(policy: Policy) -> None:
    ((one,),) = sample_all(policy, SamplingRequest((3, 4, TURN), max_tokens=5))
    whole = prompt_logprobs(policy, [3, 4, TURN, *one.tokens], TURN)
    assert whole[2:] == pytest.approx(one.all_logprobs, abs=1e-5)
