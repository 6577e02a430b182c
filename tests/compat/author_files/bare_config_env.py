"""An environment in atroposlib's manner: one bare server config, managed sampling, attributes set after `super()`."""

from atroposlib.envs.base import (
    APIServerConfig,
    BaseEnv,
    BaseEnvConfig,
    EvalHandlingEnum,
    OpenaiConfig,
    ScoredDataGroup,
)
from atroposlib.envs.server_handling.server_manager import ServerManager
from atroposlib.type_definitions import Item
from atroposlib.utils.tokenize_for_trainer import tokenize_for_trainer


class BareConfigEnv(BaseEnv):
    name = "bare_config"

    def __init__(self, config, server_configs, slurm=True, testing=False):
        super().__init__(config, server_configs, slurm, testing)
        self.config = config
        self.rollouts_for_wandb = []
        self.completion_lengths = []
        self.max_token_len = 64
        self.iter = 0

    @classmethod
    def config_init(cls):
        config = BaseEnvConfig(group_size=2, use_wandb=False, eval_handling=EvalHandlingEnum.NONE, start_tok_length=8)
        return config, OpenaiConfig(base_url="http://localhost:9123/v1", model_name="small", weight=1.0)

    async def get_next_item(self) -> Item:
        self.iter += 1
        return {"question": f"What is {self.iter} plus 1?"}

    async def collect_trajectories(self, item: Item):
        assert isinstance(self.server, ServerManager)
        assert isinstance(self.server_configs[0], APIServerConfig)
        messages = [{"role": "user", "content": item["question"]}]
        prompt_ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        assert isinstance(prompt_ids, list)
        group = ScoredDataGroup(tokens=[], masks=[], scores=[])
        async with self.server.managed_server(tokenizer=self.tokenizer) as managed:
            await managed.chat_completion(messages=messages, n=self.config.group_size, max_tokens=8)
            nodes = managed.get_state()["nodes"]
        for number, node in enumerate(nodes):
            group["tokens"].append(node.tokens)
            group["masks"].append(node.masked_tokens)
            group["scores"].append(float(number))
        turn = [*messages, {"role": "assistant", "content": "2"}]
        group["messages"] = [turn for _ in tokenize_for_trainer(self.tokenizer, turn) and nodes]
        return group, []

    async def evaluate(self, *args, **kwargs):
        return None

    async def wandb_log(self, wandb_metrics=None):
        await super().wandb_log(wandb_metrics or {})


if __name__ == "__main__":
    BareConfigEnv.cli()
