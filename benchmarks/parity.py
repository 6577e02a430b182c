"""The environment that `runtime.py` measures: one request an item, one group of it, scored by the last token id.

Upstream's side runs the same source, with the import line exchanged.
"""

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup


class Parity(BaseEnv):
    """A completion is right when its last token id is even."""

    name = "parity"

    @classmethod
    def config_init(cls):
        config = BaseEnvConfig(
            group_size=8, use_wandb=False, total_steps=1_000_000_000, steps_per_eval=0, wandb_name="parity",
            max_batches_offpolicy=100, num_rollouts_per_group_for_logging=0,
        )  # fmt: skip
        return config, [APIServerConfig(server_type="vllm", api_key="x")]

    async def setup(self):
        self.iter = 0

    async def evaluate(self, *args, **kwargs):
        pass

    async def get_next_item(self):
        self.iter += 1
        return {"text": f"What is {self.iter} plus {self.iter}?"}

    async def collect_trajectories(self, item):
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            await server.chat_completion(
                messages=[{"role": "user", "content": item["text"]}],
                n=self.config.group_size, max_tokens=self.config.max_token_length, temperature=1.0,
            )  # fmt: skip
            nodes = server.get_state()["nodes"]
        group = ScoredDataGroup(tokens=[], masks=[], scores=[], inference_logprobs=[])
        for node in nodes:
            group["tokens"].append(node.tokens)
            group["masks"].append(node.masked_tokens)
            group["inference_logprobs"].append(node.logprobs)
            group["scores"].append(1.0 if node.tokens[-1] % 2 == 0 else 0.0)
        return group, []


if __name__ == "__main__":
    Parity.cli()
