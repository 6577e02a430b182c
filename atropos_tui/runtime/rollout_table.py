"""Rollouts for the table at W&B: kept as tokens while groups flow, decoded when metrics are logged."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv


class RolloutTable:
    """The newest groups, each as pairs of tokens and score."""

    def __init__(self, env: BaseEnv) -> None:
        self._env = env
        self._groups: deque[list[tuple[list[int], float]]] = deque(maxlen=max(1, env.config.num_rollouts_to_keep))

    def add(self, group: Mapping[str, Any]) -> None:
        """Keep the first rollouts of a group, as many as the config says; -1 is all."""
        wanted = self._env.config.num_rollouts_per_group_for_logging
        rows = list(zip(group["tokens"], group["scores"], strict=False))
        self._groups.append(rows if wanted < 0 else rows[:wanted])

    def decode(self) -> list[list[tuple[str, float]]]:
        """What was kept, as pairs of text and score, and forget it."""
        groups = list(self._groups)
        self._groups.clear()
        tokenizer = self._env.tokenizer
        return [[(tokenizer.decode(tokens), score) for tokens, score in rows] for rows in groups]
