"""Advantages from rewards, and the statistics they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from atropos_tui.runtime.types import number

Floats = npt.NDArray[np.floating[Any]]


def allclose_to_first(
    values: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, return_vector: bool = False
) -> bool | npt.NDArray[np.bool_]:
    """Whether all arrays in `values` are close to the first; with `return_vector` the answer for each of them."""
    stacked = np.asarray(values)
    close = np.isclose(stacked, stacked[0], rtol=rtol, atol=atol, equal_nan=equal_nan)
    each = close.reshape(len(stacked), -1).all(axis=1)
    return each if return_vector else bool(each.all())


def compute_stats(data: Sequence[number | Sequence[Any]]) -> dict[str, float]:
    """`mean` and `var`, the population's, of all numbers in nested lists. Raises ValueError when there is none."""
    flat = np.fromiter(_numbers(data), dtype=float)
    if not flat.size:
        raise ValueError("No numerical elements found in the input data.")
    return {"mean": float(flat.mean()), "var": float(flat.var())}


def compute_discounted_returns(rewards: Any, gamma: float) -> Floats:
    """The return from each step on, R[t] = r[t] + gamma R[t+1]."""
    steps = rewards if isinstance(rewards, np.ndarray) else np.array(rewards, dtype=np.float32)
    returns = np.empty_like(steps)
    following = 0.0
    for t in reversed(range(len(steps))):
        following = steps[t] + gamma * following
        returns[t] = following
    return returns


def compute_grpo_process_supervision_advantages(
    rewards: Sequence[Sequence[number]], gamma: float | None = None, std_tol: float = 1e-8
) -> list[Floats]:
    """Advantages [rollout][step] of GRPO with process supervision (DeepSeekMath, section 4.1.3).

    The rewards of all steps of the group are normalised together; an advantage is the sum of the normalised rewards
    from its step on, discounted by `gamma`. Raises ValueError when the rewards spread less than `std_tol`.
    """
    stats = compute_stats(rewards)
    deviation = stats["var"] ** 0.5
    if deviation < std_tol:
        raise ValueError(f"`std` is smaller than tolerance of {std_tol}.")
    normalized = [(np.array(steps) - stats["mean"]) / deviation for steps in rewards]
    return [compute_discounted_returns(steps, 1.0 if gamma is None else gamma) for steps in normalized]


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, (int, float)):
        yield data
    elif isinstance(data, list):
        for entry in data:
            yield from _numbers(entry)
    else:
        raise ValueError(f"Invalid element type encountered: {type(data)}")
