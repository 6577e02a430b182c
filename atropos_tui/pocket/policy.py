"""A character transformer small enough to learn on a CPU while somebody watches, with its gradient derived by hand.

Pre-norm blocks of attention and a ReLU MLP (arXiv 1706.03762, 2002.04745), and a head that is tied to the token
embeddings (arXiv 1608.05859) through a square matrix. That matrix starts at zero: the untrained policy is exactly
uniform, so that a run begins with the entropy ln V and a score that is plain luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from atropos_tui.pocket.layers import (
    HIDDEN,
    Array,
    SavedNorm,
    Tokens,
    attention,
    attention_backward,
    embedding_backward,
    join_heads,
    join_heads_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    split_heads,
    split_heads_backward,
)

Parameters: TypeAlias = dict[str, Array]


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """Sizes of a policy. `reach` is how many tokens before, and how many after, the anchor have a position."""

    vocabulary: int
    reach: int = 32
    width: int = 64
    blocks: int = 2
    heads: int = 4
    hidden: int = 128

    @property
    def positions(self) -> int:
        return 2 * self.reach


class KeysAndValues(NamedTuple):
    """What one block has computed of the tokens so far, (B, H, T, d) each."""

    keys: Array
    values: Array


@dataclass(frozen=True, slots=True)
class BlockActivations:
    """What the backward pass of one block needs of its forward pass."""

    attention_input: Array
    attention_norm: SavedNorm
    queries: Array
    past: KeysAndValues
    attention_weights: Array
    mixed: Array
    mlp_input: Array
    mlp_norm: SavedNorm
    rectified: Array


@dataclass(frozen=True, slots=True)
class Activations:
    """What the backward pass needs of the forward pass."""

    tokens: Tokens
    positions: Tokens
    blocks: tuple[BlockActivations, ...]
    head_norm: SavedNorm
    head_input: Array
    prediction: Array


def initial_parameters(shape: PolicyShape, seed: int, dtype: type[np.floating] = np.float32) -> Parameters:
    """Embeddings are standard normal, weights uniform with variance 1 / (3 · fan-in), biases and the head zero."""
    random = np.random.default_rng(seed)
    width, hidden = shape.width, shape.hidden

    def uniform(fan_in: int, fan_out: int) -> Array:
        return random.uniform(-1.0, 1.0, (fan_in, fan_out)) / math.sqrt(fan_in)

    parameters: Parameters = {
        "token_embedding": random.standard_normal((shape.vocabulary, width)),
        "position_embedding": random.standard_normal((shape.positions, width)),
    }
    for block in range(shape.blocks):
        parameters |= {
            f"{block}.attention_norm.gain": np.ones(width),
            f"{block}.attention_norm.bias": np.zeros(width),
            f"{block}.queries_keys_values.weight": uniform(width, 3 * width),
            f"{block}.queries_keys_values.bias": np.zeros(3 * width),
            f"{block}.attention_output.weight": uniform(width, width),
            f"{block}.attention_output.bias": np.zeros(width),
            f"{block}.mlp_norm.gain": np.ones(width),
            f"{block}.mlp_norm.bias": np.zeros(width),
            f"{block}.mlp_in.weight": uniform(width, hidden),
            f"{block}.mlp_in.bias": np.zeros(hidden),
            f"{block}.mlp_out.weight": uniform(hidden, width),
            f"{block}.mlp_out.bias": np.zeros(width),
        }
    parameters |= {
        "head_norm.gain": np.ones(width),
        "head_norm.bias": np.zeros(width),
        "head.weight": np.zeros((width, width)),
        "head.bias": np.zeros(shape.vocabulary),
    }
    return {name: value.astype(dtype) for name, value in parameters.items()}


class Policy:
    """Next-token logits of token sequences, and the gradient of a loss on them with respect to the parameters."""

    def __init__(self, shape: PolicyShape, parameters: Parameters) -> None:
        self.shape = shape
        self.parameters = parameters

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parameters["head.bias"].dtype

    def forward(self, tokens: Tokens, positions: Tokens) -> tuple[Array, Activations]:
        """Tokens and their positions (B, T) → logits (B, T, V) of each following token, and the activations."""
        length = tokens.shape[1]
        causal = np.triu(np.full((length, length), HIDDEN, self.dtype), k=1)
        x = self._embed(tokens, positions)
        blocks = []
        for block in range(self.shape.blocks):
            x, activations = self._block(block, x, causal, None)
            blocks.append(activations)
        logits, head_norm, head_input, prediction = self._head(x)
        return logits, Activations(tokens, positions, tuple(blocks), head_norm, head_input, prediction)

    def extend(
        self, tokens: Tokens, positions: Tokens, hiding: Array, past: Sequence[KeysAndValues | None]
    ) -> tuple[Array, list[KeysAndValues]]:
        """Logits (B, V) after the last of T further tokens (B, T), given what the blocks have computed of those before.

        `hiding` (B, 1, T or 1, all tokens) is 0 where a query sees a key and HIDDEN elsewhere. Returns the past for the
        next call too.
        """
        x = self._embed(tokens, positions)
        extended = []
        for block in range(self.shape.blocks):
            x, activations = self._block(block, x, hiding, past[block])
            extended.append(activations.past)
        return self._head(x[:, -1])[0], extended

    def backward(self, grad_logits: Array, saved: Activations) -> Parameters:
        """The gradient of the loss with respect to each parameter, from that with respect to the logits (B, T, V)."""
        gradients: Parameters = {}
        grad_x = self._head_backward(grad_logits, saved, gradients)
        for block in reversed(range(self.shape.blocks)):
            grad_x = self._block_backward(block, grad_x, saved.blocks[block], gradients)
        gradients["token_embedding"] += embedding_backward(grad_x, saved.tokens, self.shape.vocabulary)
        gradients["position_embedding"] = embedding_backward(grad_x, saved.positions, self.shape.positions)
        return gradients

    def _embed(self, tokens: Tokens, positions: Tokens) -> Array:
        return self.parameters["token_embedding"][tokens] + self.parameters["position_embedding"][positions]

    def _block(self, block: int, x: Array, hiding: Array, past: KeysAndValues | None) -> tuple[Array, BlockActivations]:
        p, at = self.parameters, f"{block}."
        attention_input, attention_norm = layer_norm(x, p[at + "attention_norm.gain"], p[at + "attention_norm.bias"])
        projected = linear(attention_input, p[at + "queries_keys_values.weight"], p[at + "queries_keys_values.bias"])
        queries, keys, values = split_heads(projected, self.shape.heads)
        if past is not None:
            keys = np.concatenate([past.keys, keys], axis=2)
            values = np.concatenate([past.values, values], axis=2)
        by_head, weights = attention(queries, keys, values, hiding)
        mixed = join_heads(by_head)
        x = x + linear(mixed, p[at + "attention_output.weight"], p[at + "attention_output.bias"])
        mlp_input, mlp_norm = layer_norm(x, p[at + "mlp_norm.gain"], p[at + "mlp_norm.bias"])
        rectified = np.maximum(linear(mlp_input, p[at + "mlp_in.weight"], p[at + "mlp_in.bias"]), 0.0)
        x = x + linear(rectified, p[at + "mlp_out.weight"], p[at + "mlp_out.bias"])
        return x, BlockActivations(
            attention_input, attention_norm, queries, KeysAndValues(keys, values), weights, mixed,
            mlp_input, mlp_norm, rectified,
        )  # fmt: skip

    def _block_backward(self, block: int, grad: Array, saved: BlockActivations, gradients: Parameters) -> Array:
        p, at = self.parameters, f"{block}."

        def through_linear(name: str, grad: Array, x: Array) -> Array:
            grad_x, gradients[f"{at}{name}.weight"], gradients[f"{at}{name}.bias"] = linear_backward(
                grad, x, p[f"{at}{name}.weight"]
            )
            return grad_x

        def through_norm(name: str, grad: Array, saved_norm: SavedNorm) -> Array:
            grad_x, gradients[f"{at}{name}.gain"], gradients[f"{at}{name}.bias"] = layer_norm_backward(
                grad, saved_norm, p[f"{at}{name}.gain"]
            )
            return grad_x

        grad_hidden = through_linear("mlp_out", grad, saved.rectified) * (saved.rectified > 0)
        grad = grad + through_norm("mlp_norm", through_linear("mlp_in", grad_hidden, saved.mlp_input), saved.mlp_norm)
        grad_mixed = through_linear("attention_output", grad, saved.mixed)
        grad_attention = attention_backward(
            join_heads_backward(grad_mixed, self.shape.heads), saved.queries, *saved.past, saved.attention_weights
        )
        grad_projected = split_heads_backward(np.stack(grad_attention))
        grad_input = through_linear("queries_keys_values", grad_projected, saved.attention_input)
        return grad + through_norm("attention_norm", grad_input, saved.attention_norm)

    def _head(self, x: Array) -> tuple[Array, SavedNorm, Array, Array]:
        p = self.parameters
        head_input, head_norm = layer_norm(x, p["head_norm.gain"], p["head_norm.bias"])
        # Divided by sqrt(D), because embeddings of unit variance would make the logits as many times too large.
        prediction = head_input @ p["head.weight"] / math.sqrt(self.shape.width)
        return linear(prediction, p["token_embedding"].T, p["head.bias"]), head_norm, head_input, prediction

    def _head_backward(self, grad: Array, saved: Activations, gradients: Parameters) -> Array:
        p = self.parameters
        grad_prediction, grad_table, gradients["head.bias"] = linear_backward(
            grad, saved.prediction, p["token_embedding"].T
        )
        gradients["token_embedding"] = grad_table.T
        grad_prediction = grad_prediction / math.sqrt(self.shape.width)
        grad_input, gradients["head.weight"], _ = linear_backward(grad_prediction, saved.head_input, p["head.weight"])
        grad_x, gradients["head_norm.gain"], gradients["head_norm.bias"] = layer_norm_backward(
            grad_input, saved.head_norm, p["head_norm.gain"]
        )
        return grad_x
