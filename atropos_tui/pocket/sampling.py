"""Sampling from the policy: prompts of any lengths in one batch, one token a step, keys and values cached.

Shapes: R prompts, B samples in all, P the longest prompt, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atropos_tui.pocket.layers import HIDDEN, Array, Tokens, log_softmax
from atropos_tui.pocket.policy import KeysAndValues, Policy
from atropos_tui.pocket.positions import anchor_of, positions_of


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """`n` samples of one prompt (token ids), at most `max_tokens` each. Temperature 0 takes the likeliest token."""

    prompt: tuple[int, ...]
    n: int = 1
    max_tokens: int = 16
    temperature: float = 1.0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion; its last token is the end token if the policy stopped of itself.

    `all_logprobs` (tokens, V) are the policy's own, at temperature 1 and before top-p, as vLLM reports them and as a
    trainer needs them.
    """

    tokens: list[int]
    all_logprobs: Array

    @property
    def logprobs(self) -> list[float]:
        """Of the sampled tokens."""
        sampled: list[float] = self.all_logprobs[np.arange(len(self.tokens)), self.tokens].tolist()
        return sampled


def sample(
    policy: Policy, requests: Sequence[SamplingRequest], end_token: int, turn_token: int, random: np.random.Generator
) -> list[list[Sample]]:
    """The samples of each request, in the order of the requests."""
    copies = np.array([request.n for request in requests])
    logits, hiding, next_position, past = _read_prompts(policy, [request.prompt for request in requests], turn_token)

    # Each prompt was read once; from here on each of its samples has a row of its own.
    logits, hiding = logits.repeat(copies, axis=0), hiding.repeat(copies, axis=0)
    next_position = next_position.repeat(copies)
    past = [KeysAndValues(block.keys.repeat(copies, axis=0), block.values.repeat(copies, axis=0)) for block in past]
    temperature = np.array([[request.temperature] for request in requests]).repeat(copies, axis=0)
    top_p = np.array([[request.top_p] for request in requests]).repeat(copies, axis=0)
    limit = np.array([request.max_tokens for request in requests]).repeat(copies)

    tokens: list[Tokens] = []
    all_logprobs: list[Array] = []
    lengths = limit.copy()
    shown = np.zeros((len(limit), 1, 1, 1), hiding.dtype)
    while True:
        chosen = _choose(logits, temperature, top_p, random)
        tokens.append(chosen)
        all_logprobs.append(log_softmax(logits))
        lengths = np.where(chosen == end_token, np.minimum(lengths, len(tokens)), lengths)
        if (lengths <= len(tokens)).all():
            break
        hiding = np.concatenate([hiding, shown], axis=-1)
        logits, past = policy.extend(chosen[:, None], next_position[:, None], hiding, past)
        next_position = np.minimum(next_position + 1, policy.shape.positions - 1)

    by_row, logprobs_by_row = np.stack(tokens, axis=1), np.stack(all_logprobs, axis=1)
    samples = iter(
        Sample(by_row[row, :length].tolist(), logprobs_by_row[row, :length]) for row, length in enumerate(lengths)
    )
    return [[next(samples) for _ in range(request.n)] for request in requests]


def prompt_logprobs(policy: Policy, prompt: Sequence[int], turn_token: int) -> Array:
    """Logprobs (P - 1, V) of every token at each place of a prompt but the first."""
    positions = positions_of(len(prompt), anchor_of(prompt, turn_token), policy.shape.reach)
    logits, _ = policy.forward(np.array([prompt], np.int64), positions[None])
    return log_softmax(logits[0, :-1])


def _read_prompts(
    policy: Policy, prompts: Sequence[Sequence[int]], turn_token: int
) -> tuple[Array, Array, Tokens, list[KeysAndValues]]:
    """Logits (R, V) after each prompt, what hides its padding (R, 1, 1, P), its next position (R,), and the past.

    Prompts are padded on the left: all end in the same column, and so does every token that is sampled after them.
    """
    width = max(len(prompt) for prompt in prompts)
    tokens = np.zeros((len(prompts), width), np.int64)
    positions = np.zeros((len(prompts), width), np.int64)
    hiding = np.zeros((len(prompts), 1, 1, width), policy.dtype)
    for row, prompt in enumerate(prompts):
        padding = width - len(prompt)
        tokens[row, padding:] = prompt
        positions[row, padding:] = positions_of(len(prompt), anchor_of(prompt, turn_token), policy.shape.reach)
        hiding[row, ..., :padding] = HIDDEN
    causal = np.triu(np.full((width, width), HIDDEN, policy.dtype), k=1)
    logits, past = policy.extend(tokens, positions, causal + hiding, [None] * policy.shape.blocks)
    return logits, hiding, np.minimum(positions[:, -1] + 1, policy.shape.positions - 1), past


def _choose(logits: Array, temperature: Array, top_p: Array, random: np.random.Generator) -> Tokens:
    """One token a row (B,), by the Gumbel-max trick; rows of temperature 0 take the likeliest."""
    scores = log_softmax(logits / np.maximum(temperature, 1e-6))
    if (top_p < 1.0).any():
        scores = np.where(_nucleus(np.exp(scores), top_p), scores, -np.inf)
    noise = random.gumbel(size=scores.shape)
    chosen: Tokens = np.where(temperature > 0, scores + noise, scores).argmax(axis=-1)
    return chosen


def _nucleus(probabilities: Array, top_p: Array) -> NDArray[np.bool_]:
    """Which tokens (B, V) are among the likeliest that together reach `top_p` (arXiv 1904.09751)."""
    order = np.argsort(-probabilities, axis=-1)
    descending = np.take_along_axis(probabilities, order, axis=-1)
    kept = np.zeros(probabilities.shape, np.bool_)
    np.put_along_axis(kept, order, descending.cumsum(axis=-1) - descending < top_p, axis=-1)
    return kept
