"""Write a short string backwards: the smallest task that shows everything, from luck to mastery.

The score is dense: the share of letters that stand in the right place. When nearly all of them do, the task gets
harder, by longer strings and more letters to choose from, so that a run never starves on groups of equal scores.

The defaults suit the pocket policy of `atropos-tui demo`. For a model that reads English, give an instruction:

    atropos-tui serve envs/reverse.py --env.instruction "Write this backwards, and nothing else: {text}" \
        --env.max_tokens 64 --env.tokenizer_name MODEL --openai.model_name MODEL --openai.base_url URL
"""

from __future__ import annotations

import random
from collections import deque
from string import ascii_lowercase
from typing import Any

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, ScoredDataGroup
from atropos_tui.pocket.tokenizer import tokenizer_dir

LEVEL_WINDOW = 40  # groups of the newest level whose mean decides whether it is solved
EVAL_ITEMS = 16


class ReverseConfig(BaseEnvConfig):
    instruction: str = Field("{text}", description="What the model is told; {text} is the string")
    first_length: int = Field(5, ge=1, description="Letters of a string at the first level")
    longest: int = Field(24, ge=1, description="Letters of a string at most")
    first_letters: int = Field(10, ge=2, le=26, description="Size of the alphabet at the first level")
    solved_at: float = Field(0.95, description="Mean score at which a level counts as solved")
    max_tokens: int = Field(28, description="Tokens a reply may have")
    seed: int = Field(7, description="Seed of the strings")


class ReverseEnv(BaseEnv):
    name = "reverse"
    env_config_cls = ReverseConfig

    @classmethod
    def config_init(cls) -> tuple[ReverseConfig, list[APIServerConfig]]:
        tokenizer = str(tokenizer_dir())
        config = ReverseConfig(
            tokenizer_name=tokenizer, group_size=8, max_num_workers=24, max_batches_offpolicy=2, batch_size=-1,
            max_token_length=64, total_steps=1_000_000, steps_per_eval=100, use_wandb=False, wandb_name=cls.name,
        )  # fmt: skip
        server = APIServerConfig(server_type="vllm", model_name=tokenizer, base_url="http://localhost:9001/v1")
        return config, [server]

    async def setup(self) -> None:
        self.random = random.Random(self.config.seed)
        self.level = 0
        self.recent: deque[float] = deque(maxlen=LEVEL_WINDOW)

    async def get_next_item(self) -> dict[str, Any]:
        return {"text": self._text(self.random), "level": self.level}

    async def collect_trajectories(self, item: dict[str, Any]) -> tuple[ScoredDataGroup, list[Any]]:
        messages = [{"role": "user", "content": self.config.instruction.format(text=item["text"])}]
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        group = ScoredDataGroup(tokens=[], masks=[], scores=[], inference_logprobs=[], messages=[])
        for choice, node in zip(answer.choices, nodes, strict=True):
            reply = choice.message.content or ""
            group["tokens"].append(node.tokens)
            group["masks"].append(node.masked_tokens)
            group["inference_logprobs"].append(node.logprobs)
            group["scores"].append(score(item["text"], reply))
            group["messages"].append([*messages, {"role": "assistant", "content": reply}])
        self._learn_from(item, group["scores"])
        return group, []

    async def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Greedy replies to fixed strings of the current level."""
        fixed = random.Random(0)
        texts = [self._text(fixed) for _ in range(EVAL_ITEMS)]
        scores = []
        for text in texts:
            answer = await self.server.chat_completion(
                messages=[{"role": "user", "content": self.config.instruction.format(text=text)}],
                n=1, max_tokens=self.config.max_tokens, temperature=0.0, split="eval",
            )  # fmt: skip
            scores.append(score(text, answer.choices[0].message.content or ""))
        exact = sum(value == 1.0 for value in scores) / len(scores)
        metrics = {"eval/score": sum(scores) / len(scores), "eval/exact": exact, "eval/level": float(self.level)}
        await self.evaluate_log(metrics=metrics, verbose=False)
        return metrics

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        metrics = dict(wandb_metrics or {})
        metrics["train/level"] = self.level
        if self.recent:
            metrics["train/recent_score"] = sum(self.recent) / len(self.recent)
        await super().wandb_log(metrics)

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        super().save_checkpoint(step, {**(data or {}), "level": self.level})

    def _text(self, source: random.Random) -> str:
        """A string of this level: one letter longer at every second level, four letters more at those between."""
        length = min(self.config.longest, self.config.first_length + (self.level + 1) // 2)
        letters = min(len(ascii_lowercase), self.config.first_letters + 4 * (self.level // 2))
        return "".join(source.choices(ascii_lowercase[:letters], k=length))

    def _learn_from(self, item: dict[str, Any], scores: list[float]) -> None:
        if item["level"] != self.level:
            return
        self.recent.append(sum(scores) / len(scores))
        if len(self.recent) == LEVEL_WINDOW and sum(self.recent) / LEVEL_WINDOW >= self.config.solved_at:
            self.level += 1
            self.recent.clear()


def score(text: str, reply: str) -> float:
    """The share of places with the right letter, from 0 to 1; half of it when the reply has another length."""
    wanted, said = text[::-1], reply.strip()
    right = sum(letter == other for letter, other in zip(wanted, said, strict=False))
    share = right / max(len(wanted), len(said))
    return share if len(said) == len(wanted) else share / 2


if __name__ == "__main__":
    ReverseEnv.cli()
