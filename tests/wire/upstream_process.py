"""An environment of atroposlib 0.4.0 that needs no model. Run by upstream's interpreter, never imported here."""

from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup


class UpstreamCounting(BaseEnv):
    name = "upstream_counting"
    counted = 0

    @classmethod
    def config_init(cls):
        config = BaseEnvConfig(group_size=2, use_wandb=False, total_steps=3, max_token_length=64, wandb_name="counting")
        return config, [APIServerConfig(server_type="openai", api_key="x", base_url="http://127.0.0.1:1/v1")]

    async def setup(self):
        pass

    async def evaluate(self, *args, **kwargs):
        pass

    async def get_next_item(self):
        self.counted += 1
        return self.counted

    async def collect_trajectories(self, item):
        group = ScoredDataGroup(tokens=[], masks=[], scores=[])
        for answer in (item, -item):
            tokens = self.tokenizer.encode(f"count {answer}")
            group["tokens"].append(tokens)
            group["masks"].append([-100, *tokens[1:]])
            group["scores"].append(float(answer))
        if item == 2:
            group["messages"] = [
                [{"role": "user", "content": "count"}, {"role": "assistant", "content": str(answer)}]
                for answer in (item, -item)
            ]
        return group, []


if __name__ == "__main__":
    UpstreamCounting.cli()
