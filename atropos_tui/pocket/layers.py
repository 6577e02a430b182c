"""The layers of the policy: each one a forward function and its hand-derived backward function.

Shapes: B sequences, T tokens, D the width of the residual stream, H heads of d = D / H. Forward functions return their
result and, where the backward function needs more than its arguments, what they saved for it. Backward functions take
the gradient of the loss with respect to the result and return it with respect to each input, in the order of inputs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
Tokens: TypeAlias = NDArray[np.int64]

HIDDEN = -1e9  # Added to the score of a key that a query must not see; finite, so that an all-hidden row is no NaN.


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """(…, I) with weight (I, O) and bias (O) → (…, O)."""
    return x @ weight + bias


def linear_backward(grad: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    flat_grad = grad.reshape(-1, grad.shape[-1])
    flat_x = x.reshape(-1, x.shape[-1])
    return grad @ weight.T, flat_x.T @ flat_grad, flat_grad.sum(axis=0)


class SavedNorm(NamedTuple):
    normed: Array  # (…, D), before gain and bias
    inverse_std: Array  # (…, 1)


def layer_norm(x: Array, gain: Array, bias: Array) -> tuple[Array, SavedNorm]:
    """Layer normalisation (arXiv 1607.06450) over the last axis: (…, D) → (…, D)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse_std = 1.0 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    normed = centred * inverse_std
    return normed * gain + bias, SavedNorm(normed, inverse_std)


def layer_norm_backward(grad: Array, saved: SavedNorm, gain: Array) -> tuple[Array, Array, Array]:
    leading = tuple(range(grad.ndim - 1))
    grad_normed = grad * gain
    grad_x = saved.inverse_std * (
        grad_normed
        - grad_normed.mean(axis=-1, keepdims=True)
        - saved.normed * (grad_normed * saved.normed).mean(axis=-1, keepdims=True)
    )
    return grad_x, (grad * saved.normed).sum(axis=leading), grad.sum(axis=leading)


def split_heads(x: Array, heads: int) -> Array:
    """(B, T, 3·D) of queries, keys and values side by side → (3, B, H, T, d)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, 3, heads, width // (3 * heads)).transpose(2, 0, 3, 1, 4)


def split_heads_backward(grad: Array) -> Array:
    _, batch, heads, length, head_width = grad.shape
    return grad.transpose(1, 3, 0, 2, 4).reshape(batch, length, 3 * heads * head_width)


def join_heads(x: Array) -> Array:
    """(B, H, T, d) → (B, T, D)."""
    batch, heads, length, head_width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * head_width)


def join_heads_backward(grad: Array, heads: int) -> Array:
    batch, length, width = grad.shape
    return grad.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    normed: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return normed


def log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    logprobs: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logprobs


def attention(queries: Array, keys: Array, values: Array, hiding: Array) -> tuple[Array, Array]:
    """Scaled dot-product attention (arXiv 1706.03762).

    Queries (B, H, Tq, d), keys and values (B, H, Tk, d), hiding (…, Tq, Tk): 0 where a query sees a key, else HIDDEN.
    Returns the mixed values (B, H, Tq, d) and the attention weights (B, H, Tq, Tk).
    """
    scale = 1.0 / math.sqrt(queries.shape[-1])
    weights = softmax(queries @ keys.swapaxes(-1, -2) * scale + hiding)
    return weights @ values, weights


def attention_backward(
    grad: Array, queries: Array, keys: Array, values: Array, weights: Array
) -> tuple[Array, Array, Array]:
    scale = 1.0 / math.sqrt(queries.shape[-1])
    grad_weights = grad @ values.swapaxes(-1, -2)
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(axis=-1, keepdims=True)) * scale
    return grad_scores @ keys, grad_scores.swapaxes(-1, -2) @ queries, weights.swapaxes(-1, -2) @ grad


def embedding_backward(grad: Array, indices: Tokens, rows: int) -> Array:
    """Gradient of a table (rows, D) of which `indices` (B, T) picked the rows."""
    table = np.zeros((rows, grad.shape[-1]), grad.dtype)
    np.add.at(table, indices.reshape(-1), grad.reshape(-1, grad.shape[-1]))
    return table
