"""Games in atroposlib's manner: one rollout at a time, a server held for an episode, a `cli` of their own.

Odd items give no rollout at all, every third one gives a list of groups, and one of the lists holds None.
"""

import asyncio
import sys
import threading

from atroposlib.envs.base import BaseEnv, BaseEnvConfig, ScoredDataItem
from atroposlib.envs.server_handling.server_manager import APIServerConfig, ServerManager
from atroposlib.utils.best_of_n_selection import select_best_index
from pydantic import Field


class GamesConfig(BaseEnvConfig):
    rounds: list[str] = Field(default_factory=lambda: ["deal", "play"])
    judge_name: str = "judge"


class GamesEnv(BaseEnv):
    name = "games"
    env_config_cls = GamesConfig

    def __init__(self, config, server_configs, slurm=True, testing=False):
        super().__init__(config, server_configs, slurm, testing)
        self.judge = ServerManager([APIServerConfig(model_name=config.judge_name)], slurm=False, testing=testing)
        self.tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
        self.tokenizer.pad_token = self.tokenizer.eos_token
        self.server.tool_parser = "hermes"
        self.number = 0
        self.cleaned = 0

    @classmethod
    def cli(cls):
        sys.stdout.write("games begin\n")
        sys.stdout.flush()
        super().cli()

    @classmethod
    def config_init(cls):
        return cls.env_config_cls(group_size=2, use_wandb=False), [
            APIServerConfig(model_name="player", extra_body=None)
        ]

    async def get_next_item(self):
        self.number += 1
        return self.number

    async def collect_trajectories(self, item):
        if item % 3:
            return await super().collect_trajectories(item)
        groups = [self.group_of(turn) for turn in self.config.rounds]
        return [groups[0], None, groups[1]], []

    async def collect_trajectory(self, item):
        if item % 2:
            return None, []
        async with self.server.dedicated_server() as server:
            answer = await server.chat_completion(messages=[{"role": "user", "content": str(item)}], n=1, max_tokens=4)
        verdict = await asyncio.to_thread(self.judged_elsewhere, answer.choices[0].message.content)
        ids = self.tokenizer.apply_chat_template([{"role": "agent", "content": "go"}])
        best = select_best_index(primary_scores=[0.0, verdict], secondary_scores=[0.0, 0.0])
        return ScoredDataItem(tokens=ids, masks=[-100, *ids[1:]], scores=best, finish_reason="stop"), []

    def judged_elsewhere(self, text):
        """Asks the judge from another thread, in a loop of that thread."""
        assert threading.current_thread() is not threading.main_thread()
        answer = asyncio.run(self.judge.completion(prompt=str(text), n=1, max_tokens=1))
        return float(len(answer.choices))

    def group_of(self, turn):
        ids = self.tokenizer.encode(turn)
        return {
            "tokens": [ids, ids], "masks": [ids, ids], "scores": [0, 1], "turn": turn,
            "group_overrides": None, "images": [None, "data:image/png;base64,"],
        }  # fmt: skip

    async def cleanup(self):
        await super().cleanup()
        self.cleaned += 1

    async def add_rollouts_for_wandb(self, scored_data, item=None):
        self.rollouts_for_wandb.append([(turn, item) for turn in self.config.rounds])
        if len(self.rollouts_for_wandb) > self.config.num_rollouts_to_keep:
            self.rollouts_for_wandb.pop(0)

    async def evaluate(self, *args, **kwargs):
        return None


if __name__ == "__main__":
    GamesEnv.cli()
