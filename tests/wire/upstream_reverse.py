"""Reversing short strings as an environment of atroposlib 0.4.0. Run by upstream's interpreter, never imported here."""

import random

from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup


class UpstreamReverse(BaseEnv):
    name = "upstream_reverse"

    @classmethod
    def config_init(cls):
        config = BaseEnvConfig(
            group_size=4, batch_size=8, use_wandb=False, total_steps=1000, steps_per_eval=0, max_token_length=24,
            wandb_name="upstream_reverse", max_num_workers=4, ensure_scores_are_not_same=False,
        )  # fmt: skip
        return config, [APIServerConfig(server_type="vllm", api_key="x")]

    async def setup(self):
        self.random = random.Random(1)

    async def evaluate(self, *args, **kwargs):
        pass

    async def get_next_item(self):
        return {"text": "".join(self.random.choices("abcdefghij", k=5))}

    async def collect_trajectories(self, item):
        wanted = item["text"][::-1]
        group = ScoredDataGroup(tokens=[], masks=[], scores=[], inference_logprobs=[])
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=[{"role": "user", "content": item["text"]}],
                n=self.config.group_size, max_tokens=8, temperature=1.0,
            )  # fmt: skip
            nodes = server.get_state()["nodes"]
        for choice, node in zip(answer.choices, nodes):
            said = choice.message.content or ""
            group["tokens"].append(node.tokens)
            group["masks"].append(node.masked_tokens)
            group["inference_logprobs"].append(node.logprobs)
            group["scores"].append(sum(a == b for a, b in zip(wanted, said)) / len(wanted))
        return group, []


if __name__ == "__main__":
    UpstreamReverse.cli()
