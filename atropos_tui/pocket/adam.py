"""Adam (arXiv 1412.6980) with the gradient clipped to a global norm."""

from __future__ import annotations

import math

import numpy as np

from atropos_tui.pocket.policy import Parameters


class Adam:
    """Updates the parameters it was made for in place."""

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float,
        *,
        beta1: float = 0.9,
        beta2: float = 0.95,
        epsilon: float = 1e-8,
        max_norm: float = 1.0,
    ) -> None:
        self._parameters = parameters
        self._learning_rate = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon
        self._max_norm = max_norm
        self._steps = 0
        self._mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._mean_square = {name: np.zeros_like(value) for name, value in parameters.items()}

    def state(self) -> Parameters:
        """All that changes with `step` but the parameters, by names that are not theirs."""
        return {
            "adam.steps": np.array(self._steps),
            **{f"adam.mean.{name}": value for name, value in self._mean.items()},
            **{f"adam.mean_square.{name}": value for name, value in self._mean_square.items()},
        }

    def restore(self, state: Parameters) -> None:
        """Take over what `state` gave."""
        self._steps = int(state["adam.steps"])
        self._mean = {name: state[f"adam.mean.{name}"] for name in self._mean}
        self._mean_square = {name: state[f"adam.mean_square.{name}"] for name in self._mean_square}

    def step(self, gradients: Parameters) -> float:
        """Move the parameters against the gradients once. Returns the gradients' norm before clipping."""
        norm = math.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in gradients.values()))
        shrink = min(1.0, self._max_norm / (norm + 1e-12))
        self._steps += 1
        mean_scale = self._learning_rate / (1.0 - self._beta1**self._steps)
        square_scale = 1.0 / (1.0 - self._beta2**self._steps)
        for name, gradient in gradients.items():
            gradient = gradient * shrink
            mean, mean_square = self._mean[name], self._mean_square[name]
            mean += (1.0 - self._beta1) * (gradient - mean)
            mean_square += (1.0 - self._beta2) * (gradient * gradient - mean_square)
            self._parameters[name] -= mean_scale * mean / (np.sqrt(mean_square * square_scale) + self._epsilon)
        return norm
