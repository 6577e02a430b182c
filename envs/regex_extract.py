"""Word problems whose answer is read out of the reply by a pattern: the commonest reward of all.

Problems are made on the spot, so that few are seen twice. The answer belongs into \\boxed{…}; a reply that shows it in
another way gets part of the credit for the format, so that a model which does not know the box yet finds its way there.

    atropos-tui serve envs/regex_extract.py --env.tokenizer_name MODEL \\
        --openai.model_name MODEL --openai.base_url URL
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from statistics import fmean
from typing import Any, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, Message, ScoredDataGroup

SYSTEM = "Solve the problem step by step. Give the final answer as a number in \\boxed{}."

# A text with numbers a, b and c in it, and the answer.
TEMPLATES: tuple[tuple[str, Callable[[int, int, int], int]], ...] = (
    ("{name} has {a} {things} and buys {b} boxes of {c}. How many {things} has {name} now?", lambda a, b, c: a + b * c),
    ("{a} bags hold {b} {things} each, and {c} more lie beside them. How many {things}?", lambda a, b, c: a * b + c),
    ("On {a} shelves are {b} rows each, with {c} {things} in a row. How many {things}?", lambda a, b, c: a * b * c),
    ("{name} finds {a}, then {b}, then {c} {things}. How many {things} in all?", lambda a, b, c: a + b + c),
)
NAMES = ("Ada", "Bo", "Chen", "Dora", "Emeka", "Fatima")
THINGS = ("marbles", "stamps", "apples", "shells", "coins")

# How an answer may be shown, best first, and the share of the credit for the format that this earns.
FORMATS = (
    (re.compile(r"\\boxed\{\s*([^{}]+?)\s*\}"), 1.0),
    (re.compile(r"\\boxed\s*\{?\s*([^\s{}]+)"), 0.5),
    (re.compile(r"answer\s*(?:is|:|=)\s*\**\s*([^\s*]+)", re.IGNORECASE), 0.25),
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


class Problem(TypedDict):
    question: str
    answer: int


class RegexExtractConfig(BaseEnvConfig):
    largest: int = Field(20, ge=2, description="Largest number in a problem")
    max_tokens: int = Field(512, ge=1, description="Tokens a reply may have")
    weight_of_format: float = Field(0.2, ge=0.0, le=1.0, description="What the format is worth; the answer: the rest")
    eval_problems: int = Field(50, ge=1, description="Problems of an evaluation, the same each time")
    seed: int = Field(7, description="Seed of the problems")


class RegexExtractEnv(BaseEnv):
    name = "regex_extract"
    env_config_cls = RegexExtractConfig
    config: RegexExtractConfig
    cursor_attributes = ("random",)  # which checkpoints keep, so that a run goes on where it was

    @classmethod
    def config_init(cls) -> tuple[RegexExtractConfig, list[APIServerConfig]]:
        config = RegexExtractConfig(wandb_name=cls.name, use_wandb=False, group_size=8, max_token_length=1024)
        return config, [APIServerConfig(server_type="vllm", base_url="http://localhost:9001/v1")]

    async def setup(self) -> None:
        self.random = random.Random(self.config.seed)

    async def get_next_item(self) -> Problem:
        return make_problem(self.random, self.config.largest)

    async def collect_trajectories(self, item: Problem) -> tuple[ScoredDataGroup, list[Problem]]:
        messages = prompt(item)
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        replies = [choice.message.content or "" for choice in answer.choices]
        parts = [score_parts(reply, item["answer"], self.config.weight_of_format) for reply in replies]
        return ScoredDataGroup(
            tokens=[node.tokens for node in nodes],
            masks=[node.masked_tokens for node in nodes],
            inference_logprobs=[node.logprobs for node in nodes],
            finish_reasons=[choice.finish_reason for choice in answer.choices],
            scores=[sum(each.values()) for each in parts],
            score_parts=parts,
            messages=[[*messages, {"role": "assistant", "content": reply}] for reply in replies],
        ), []

    async def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Greedy replies to the same problems each time."""
        fixed = random.Random("evaluation")
        problems = [make_problem(fixed, self.config.largest) for _ in range(self.config.eval_problems)]
        parts = await asyncio.gather(*map(self.answer_greedily, problems))
        metrics = {
            "eval/correct": fmean(part["correct"] > 0 for part in parts),
            "eval/score": fmean(sum(part.values()) for part in parts),
        }
        samples = [{**problem, **part} for problem, part in zip(problems, parts, strict=True)]
        await self.evaluate_log(metrics, samples=samples)
        return metrics

    async def answer_greedily(self, problem: Problem) -> dict[str, float]:
        answer = await self.server.chat_completion(
            messages=prompt(problem), n=1, max_tokens=self.config.max_tokens, temperature=0.0, split="eval"
        )
        return score_parts(answer.choices[0].message.content or "", problem["answer"], self.config.weight_of_format)


def make_problem(source: random.Random, largest: int) -> Problem:
    text, solve = source.choice(TEMPLATES)
    a, b, c = (source.randint(2, largest) for _ in range(3))
    question = text.format(name=source.choice(NAMES), things=source.choice(THINGS), a=a, b=b, c=c)
    return {"question": question, "answer": solve(a, b, c)}


def prompt(problem: Problem) -> list[Message]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": problem["question"]}]


def score_parts(reply: str, answer: int, weight_of_format: float) -> dict[str, float]:
    """What the reply earns for a right answer and for showing it as asked."""
    shown, share = find_answer(reply)
    correct = shown is not None and number_in(shown) == answer
    return {"correct": (1.0 - weight_of_format) * correct, "format": weight_of_format * share}


def find_answer(reply: str) -> tuple[str | None, float]:
    """The answer as the reply shows it, the last one if there are several, and the share of credit for the format."""
    for pattern, share in FORMATS:
        if shown := pattern.findall(reply):
            return shown[-1], share
    return None, 0.0


def number_in(text: str) -> float | None:
    """The number in a text such as "$1,234.00" or "12 apples"; None when it has none, or more than one."""
    numbers = NUMBER.findall(text)
    return float(numbers[0].replace(",", "")) if len(numbers) == 1 else None


if __name__ == "__main__":
    RegexExtractEnv.cli()
