"""Write a short string backwards: the smallest task that shows everything, from luck to mastery.

The score is dense: the share of letters that stand in the right place, and half of that when the reply is too short.
When a level is solved the next one is harder, with a longer string or more letters to choose from, so that a run never
starves on groups of equal scores.

The defaults suit the pocket policy of `atropos-tui demo`. For a model that reads English, give an instruction:

    atropos-tui serve envs/reverse.py --env.instruction "Write this backwards, and nothing else: {text}" \
        --env.max_tokens 64 --env.max_token_length 512 --env.tokenizer_name MODEL \
        --openai.model_name MODEL --openai.base_url URL
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Mapping
from statistics import fmean
from string import ascii_lowercase
from typing import Any, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, EvalHandlingEnum, Message, ScoredDataGroup
from atropos_tui.pocket.tokenizer import tokenizer_dir

LEVEL_WINDOW = 40  # groups of the current level whose mean decides whether it is solved
EVAL_ITEMS = 16


class ReverseItem(TypedDict):
    text: str
    level: int


class ReverseConfig(BaseEnvConfig):
    instruction: str = Field("{text}", description="What the model is told; {text} is the string")
    first_length: int = Field(5, ge=1, description="Letters of a string at the first level")
    longest: int = Field(24, ge=1, description="Letters of a string at most")
    first_letters: int = Field(10, ge=2, le=26, description="Size of the alphabet at the first level")
    solved_at: float = Field(0.95, description="Mean score at which a level counts as solved")
    max_tokens: int = Field(28, ge=1, description="Tokens a reply may have")
    seed: int = Field(7, description="Seed of the strings")


class ReverseEnv(BaseEnv):
    name = "reverse"
    env_config_cls = ReverseConfig
    config: ReverseConfig
    cursor_attributes = ("random",)  # which checkpoints keep, so that a run goes on where it was

    @staticmethod
    def wanted(text: str) -> str:
        """The reply that scores 1."""
        return text[::-1]

    @classmethod
    def config_init(cls) -> tuple[BaseEnvConfig, list[APIServerConfig]]:
        tokenizer = str(tokenizer_dir())
        config = cls.env_config_cls(
            tokenizer_name=tokenizer, wandb_name=cls.name, use_wandb=False, total_steps=1_000_000,
            group_size=8, max_token_length=64, max_num_workers=16, max_batches_offpolicy=4,
            steps_per_eval=200, eval_handling=EvalHandlingEnum.NONE,
        )  # fmt: skip
        server = APIServerConfig(
            server_type="vllm", base_url="http://localhost:9001/v1", model_name="pocket", tokenizer_name=tokenizer
        )
        return config, [server]

    async def setup(self) -> None:
        self.random = random.Random(self.config.seed)
        self.level = 1
        self.recent_scores: deque[float] = deque(maxlen=LEVEL_WINDOW)
        self.eval_metrics: dict[str, float] = {}

    async def get_next_item(self) -> ReverseItem:
        return {"text": self.text_of_level(self.random), "level": self.level}

    async def collect_trajectories(self, item: ReverseItem) -> tuple[ScoredDataGroup, list[ReverseItem]]:
        messages: list[Message] = [{"role": "user", "content": self.config.instruction.format(text=item["text"])}]
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        replies = [choice.message.content or "" for choice in answer.choices]
        parts = [score_parts(self.wanted(item["text"]), reply) for reply in replies]
        scores = [sum(each.values()) for each in parts]
        self.level_up_if_solved(item["level"], fmean(scores))
        return ScoredDataGroup(
            tokens=[node.tokens for node in nodes],
            masks=[node.masked_tokens for node in nodes],
            inference_logprobs=[node.logprobs for node in nodes],
            finish_reasons=[choice.finish_reason for choice in answer.choices],
            scores=scores,
            score_parts=parts,
            messages=[[*messages, {"role": "assistant", "content": reply}] for reply in replies],
        ), []

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Greedy replies to the same strings every time a level is evaluated."""
        started = time.time()
        fixed = random.Random(self.level)
        texts = [self.text_of_level(fixed) for _ in range(EVAL_ITEMS)]
        scores = await asyncio.gather(*map(self.score_greedily, texts))
        self.eval_metrics = {
            "eval/mean_score": fmean(scores),
            "eval/exact": fmean(value == 1.0 for value in scores),
            "eval/level": self.level,
        }
        samples = [{"text": text, "score": value} for text, value in zip(texts, scores, strict=True)]
        await self.evaluate_log(self.eval_metrics, samples=samples, start_time=started, end_time=time.time())

    async def score_greedily(self, text: str) -> float:
        answer = await self.server.chat_completion(
            messages=[{"role": "user", "content": self.config.instruction.format(text=text)}],
            n=1, max_tokens=self.config.max_tokens, temperature=0.0, split="eval",
        )  # fmt: skip
        return sum(score_parts(self.wanted(text), answer.choices[0].message.content or "").values())

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        metrics = (wandb_metrics or {}) | self.eval_metrics | {"train/level": self.level}
        if self.recent_scores:
            metrics["train/recent_score"] = fmean(self.recent_scores)
        self.eval_metrics = {}
        await super().wandb_log(metrics)

    def save_checkpoint(self, step: int, data: Mapping[str, Any] | None = None) -> None:
        super().save_checkpoint(step, {**(data or {}), "level": self.level})

    def text_of_level(self, source: random.Random) -> str:
        """Level by level, turn about: one letter longer, four more letters to choose from until it is all of them."""
        widened = min((self.level - 1) // 2, (len(ascii_lowercase) - self.config.first_letters) // 4)
        length = min(self.config.longest, self.config.first_length + self.level - 1 - widened)
        return "".join(source.choices(ascii_lowercase[: self.config.first_letters + 4 * widened], k=length))

    def level_up_if_solved(self, level: int, mean_score: float) -> None:
        if level != self.level:
            return  # a straggler from before the last level-up
        self.recent_scores.append(mean_score)
        if len(self.recent_scores) == LEVEL_WINDOW and fmean(self.recent_scores) >= self.config.solved_at:
            self.level += 1
            self.recent_scores.clear()


def score_parts(wanted: str, reply: str) -> dict[str, float]:
    """The share of places with the right letter, from 0 to 1; half of it is lost when the reply is too short.

    Without that a policy that learned to stop early would see no difference between stopping and a wrong guess.
    """
    said = reply.strip()
    right = sum(letter == other for letter, other in zip(wanted, said, strict=False))
    share = right / max(len(wanted), len(said))
    return {"letters": share, "too short": -share / 2 if len(said) < len(wanted) else 0.0}


if __name__ == "__main__":
    ReverseEnv.cli()
