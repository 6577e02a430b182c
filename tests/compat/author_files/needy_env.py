"""An environment that needs much, and does what the runtime takes another way."""

import os

from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig


class NeedyEnv(BaseEnv):
    env_config_cls = BaseEnvConfig

    @classmethod
    def config_init(cls):
        return BaseEnvConfig(), [APIServerConfig(model_name="a", base_url=f"http://host{i}/v1") for i in range(2)]

    async def setup(self):
        import no_such_package_of_anybody
        from datasets import load_dataset

        self.judge_key = os.environ["NEEDY_JUDGE_API_KEY"]
        self.rows = load_dataset("somebody/rows", split="train")
        self.model = no_such_package_of_anybody.load().to("cuda:0")

    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        return None

    async def process_manager(self):
        return None

    async def _send_scored_data_to_api(self, scored_data):
        return None
