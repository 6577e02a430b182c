"""Sampling from the policy: prompts of any lengths in one batch, one token a step, keys and values cached."""

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
    """One completion; its last token is the end-of-sequence token if the policy stopped of itself.

    `logprobs` are the policy's own, at temperature 1 and before top-p, as vLLM reports them and a trainer needs them.
    """

    tokens: list[int]
    logprobs: list[float]
    stopped: bool


def sample(
    policy: Policy, requests: Sequence[SamplingRequest], end_token: int, turn_token: int, random: np.random.Generator
) -> list[list[Sample]]:
    """The samples of each request, in the order of the requests."""
    logits, hiding, next_position, past = _read_prompts(policy, [request.prompt for request in requests], turn_token)

    # Each prompt was read once; from here on each of its samples has a row of its own.
    copies = np.array([request.n for request in requests])
    logits, hiding, next_position = (np.repeat(rows, copies, axis=0) for rows in (logits, hiding, next_position))
    past = [KeysAndValues(*(np.repeat(rows, copies, axis=0) for rows in block)) for block in past]
    temperature = np.repeat([request.temperature for request in requests], copies)[:, None]
    top_p = np.repeat([request.top_p for request in requests], copies)[:, None]
    limit = np.repeat([request.max_tokens for request in requests], copies)

    steps = int(limit.max())
    rows = np.arange(len(limit))
    tokens = np.full((len(limit), steps), end_token)
    logprobs = np.zeros((len(limit), steps))
    lengths = limit.copy()
    visible = np.zeros((len(limit), 1, 1, 1), hiding.dtype)
    for step in range(steps):
        all_logprobs = log_softmax(logits)
        tokens[:, step] = chosen = _choose(logits, temperature, top_p, random)
        logprobs[:, step] = all_logprobs[rows, chosen]
        lengths = np.where((chosen == end_token) & (step < lengths), step + 1, lengths)
        if (lengths <= step + 1).all():
            break
        hiding = np.concatenate([hiding, visible], axis=-1)
        logits, past = policy.extend(chosen[:, None], next_position[:, None], hiding, past)
        next_position = np.minimum(next_position + 1, policy.shape.positions - 1)

    samples = iter(
        Sample(
            tokens[row, :length].tolist(), logprobs[row, :length].tolist(), bool(tokens[row, length - 1] == end_token)
        )
        for row, length in enumerate(lengths)
    )
    return [[next(samples) for _ in range(request.n)] for request in requests]


def _read_prompts(
    policy: Policy, prompts: Sequence[Sequence[int]], turn_token: int
) -> tuple[Array, Array, Tokens, list[KeysAndValues]]:
    """Logits (R, V) after each of R prompts, what hides padding (R, 1, 1, P), the next positions (R,), and the past.

    Prompts are padded on the left, so that all end in the same column and every further token falls into one, too.
    """
    width = max(len(prompt) for prompt in prompts)
    tokens = np.zeros((len(prompts), width), np.int64)
    positions = np.zeros((len(prompts), width), np.int64)
    hiding = np.zeros((len(prompts), 1, 1, width), policy.parameters["head.bias"].dtype)
    for row, prompt in enumerate(prompts):
        padding = width - len(prompt)
        tokens[row, padding:] = prompt
        positions[row, padding:] = positions_of(len(prompt), anchor_of(prompt, turn_token), policy.shape.reach)
        hiding[row, ..., :padding] = HIDDEN
    causal = np.triu(np.full((width, width), HIDDEN, hiding.dtype), k=1)
    logits, past = policy.extend(tokens, positions, causal + hiding, [None] * policy.shape.blocks)
    return logits, hiding, positions[:, -1] + 1, past


def _choose(logits: Array, temperature: Array, top_p: Array, random: np.random.Generator) -> NDArray[np.int64]:
    """One token a row (B,), by the Gumbel-max trick; rows of temperature 0 take the likeliest."""
    scores = log_softmax(logits / np.maximum(temperature, 1e-6))
    if (top_p < 1.0).any():
        scores = np.where(_in_nucleus(np.exp(scores), top_p), scores, -np.inf)
    noise = random.gumbel(size=scores.shape)
    return np.where(temperature > 0, scores + noise, scores).argmax(axis=-1)


def _in_nucleus(probabilities: Array, top_p: Array) -> NDArray[np.bool_]:
    """Which tokens (B, V) are among the likeliest that together reach `top_p` (arXiv 1904.09751)."""
    order = np.argsort(-probabilities, axis=-1)
    sorted_probabilities = np.take_along_axis(probabilities, order, axis=-1)
    before = np.cumsum(sorted_probabilities, axis=-1) - sorted_probabilities
    kept = np.zeros(probabilities.shape, np.bool_)
    np.put_along_axis(kept, order, before < top_p, axis=-1)
    return kept
