"""The environment of `survival.py`: each group is made of its own number, so that whoever receives it can tell which it
is and whether all of it is there. It needs no inference server.
"""

from __future__ import annotations

from typing import Any

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup
from atropos_tui.ledger import current_group

GROUP_SIZE = 2


def numbered_group(number: int) -> ScoredDataGroup:
    """Begins with its number; length and contents follow from it."""
    sequences = [[number, sequence, *range(number % 50)] for sequence in range(GROUP_SIZE)]
    return ScoredDataGroup(
        tokens=sequences,
        masks=[[-100, *tokens[1:]] for tokens in sequences],
        scores=[float(sequence) for sequence in range(GROUP_SIZE)],
    )


class Numbered(BaseEnv):
    """Items without end."""

    name = "numbered"

    @classmethod
    def config_init(cls) -> tuple[BaseEnvConfig, list[APIServerConfig]]:
        config = BaseEnvConfig(
            group_size=GROUP_SIZE, use_wandb=False, total_steps=1_000_000_000, steps_per_eval=0, max_num_workers=8,
            max_batches_offpolicy=0,
        )  # fmt: skip
        return config, [APIServerConfig(base_url="http://127.0.0.1:9/v1", api_key="x")]

    async def setup(self) -> None:
        self.iter = 0

    async def get_next_item(self) -> int:
        self.iter += 1
        return self.iter

    async def collect_trajectories(self, item: int) -> tuple[ScoredDataGroup, list[int]]:
        number = current_group.get()
        assert number is not None
        return numbered_group(number), []

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        pass
