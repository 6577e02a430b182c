"""Policies whose logits are far from uniform, which those of a fresh policy are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from atropos_tui.pocket.policy import Policy, PolicyShape, initial_parameters

END, TURN = 0, 2


def disturbed_policy(seed: int = 1, dtype: type[np.floating[Any]] = np.float32, **sizes: int) -> Policy:
    """A policy with every parameter moved at random, those too that start at zero."""
    shape = PolicyShape(**({"vocabulary": 8, "reach": 12, "width": 16, "hidden": 24} | sizes))
    random = np.random.default_rng(seed)
    parameters = initial_parameters(shape, seed, dtype)
    return Policy(
        shape,
        {name: value + (0.3 * random.standard_normal(value.shape)).astype(dtype) for name, value in parameters.items()},
    )
