"""An environment of atroposlib 0.4.0 that asks no model. Run by upstream's interpreter, never imported here.

python upstream_sender.py serve --env.rollout_server_url URL --env.tokenizer_name DIR --env.total_steps N
"""

import random

from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup


class UpstreamSender(BaseEnv):
    name = "upstream_sender"

    @classmethod
    def config_init(cls):
        config = BaseEnvConfig(
            group_size=4, batch_size=8, use_wandb=False, steps_per_eval=0, max_token_length=64, max_num_workers=4,
            wandb_name="sender", ensure_scores_are_not_same=False, include_messages=True,
        )  # fmt: skip
        return config, [APIServerConfig(server_type="openai", base_url="http://127.0.0.1:1/v1", api_key="x",
                                        model_name="none", health_check=False)]  # fmt: skip

    async def setup(self):
        self.sent = 0
        self.random = random.Random(1)

    async def evaluate(self, *args, **kwargs):
        pass

    async def get_next_item(self):
        self.sent += 1
        return self.sent

    async def collect_trajectories(self, item):
        group = ScoredDataGroup(tokens=[], masks=[], scores=[], inference_logprobs=[], messages=[])
        for index in range(self.config.group_size):
            tokens = [item] + [self.random.randrange(30) for _ in range(15)]
            group["tokens"].append(tokens)
            group["masks"].append([-100] * 4 + tokens[4:])
            group["inference_logprobs"].append([1.0] * 4 + [-self.random.random() for _ in tokens[4:]])
            group["scores"].append(index / 4)
            group["messages"].append([{"role": "user", "content": str(item)}, {"role": "assistant", "content": "yes"}])
        return group, []


if __name__ == "__main__":
    UpstreamSender.cli()
