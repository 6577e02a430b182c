"""Grade-school maths, with answers compared by math-verify: "1/2", "0.5" and "\\frac{1}{2}" are the same.

It begins with a dozen problems that come with it. `--env.dataset openai/gsm8k` loads GSM8K itself (arXiv 2110.14168)
from the hub, and the path of a JSONL file with `question` and `answer` your own; an answer may end with "#### 42".

    pip install 'atropos-tui[math]'
    atropos-tui serve envs/gsm8k.py --env.dataset openai/gsm8k --env.tokenizer_name MODEL \\
        --openai.model_name MODEL --openai.base_url URL
"""

from __future__ import annotations

import asyncio
import importlib
import json
import random
from pathlib import Path
from statistics import fmean
from typing import Any, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, Message, ScoredDataGroup
from atropos_tui.errors import UsageError

SYSTEM = "Solve the problem step by step, then give the final answer in \\boxed{}."
SAMPLE = Path(__file__).with_name("data") / "grade_school_math.jsonl"


class Problem(TypedDict):
    question: str
    answer: str


class GSM8kConfig(BaseEnvConfig):
    dataset: str = Field(str(SAMPLE), description="A JSONL file, or the name of a data set on the hub")
    eval_share: float = Field(
        0.2, ge=0.0, lt=1.0, description="Share of a file's problems that are kept for evaluation"
    )
    max_tokens: int = Field(768, ge=1, description="Tokens a reply may have")
    seed: int = Field(7, description="Seed of the order of the problems")


class GSM8kEnv(BaseEnv):
    name = "gsm8k"
    env_config_cls = GSM8kConfig
    config: GSM8kConfig

    @classmethod
    def config_init(cls) -> tuple[GSM8kConfig, list[APIServerConfig]]:
        config = GSM8kConfig(wandb_name=cls.name, use_wandb=False, group_size=8, max_token_length=1024)
        return config, [APIServerConfig(server_type="vllm", base_url="http://localhost:9001/v1")]

    async def setup(self) -> None:
        need("math_verify")
        self.train, self.test = load(self.config.dataset, self.config.eval_share)
        random.Random(self.config.seed).shuffle(self.train)
        self.iter = 0  # which checkpoints keep, so that a run goes on where it was

    async def get_next_item(self) -> Problem:
        problem = self.train[self.iter % len(self.train)]
        self.iter += 1
        return problem

    async def collect_trajectories(self, item: Problem) -> tuple[ScoredDataGroup, list[Problem]]:
        messages = prompt(item)
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        replies = [choice.message.content or "" for choice in answer.choices]
        parts = [score_parts(reply, item["answer"]) for reply in replies]
        return ScoredDataGroup(
            tokens=[node.tokens for node in nodes],
            masks=[node.masked_tokens for node in nodes],
            inference_logprobs=[node.logprobs for node in nodes],
            finish_reasons=[choice.finish_reason for choice in answer.choices],
            scores=[sum(each.values()) for each in parts],
            score_parts=parts,
            messages=[[*messages, Message(role="assistant", content=reply)] for reply in replies],
        ), []

    async def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Greedy replies to the problems that are not trained on."""
        parts = await asyncio.gather(*map(self.answer_greedily, self.test))
        metrics = {"eval/correct": fmean(part["correct"] for part in parts)}
        samples = [{**problem, **part} for problem, part in zip(self.test, parts, strict=True)]
        await self.evaluate_log(metrics, samples=samples)
        return metrics

    async def answer_greedily(self, problem: Problem) -> dict[str, float]:
        answer = await self.server.chat_completion(
            messages=prompt(problem), n=1, max_tokens=self.config.max_tokens, temperature=0.0, split="eval"
        )
        return score_parts(answer.choices[0].message.content or "", problem["answer"])


def prompt(problem: Problem) -> list[Message]:
    return [Message(role="system", content=SYSTEM), Message(role="user", content=problem["question"])]


def score_parts(reply: str, answer: str) -> dict[str, float]:
    """1 for a right answer, and a tenth for the box, right or wrong: without it nobody could tell the answer."""
    maths = need("math_verify")
    boxed = "\\boxed{" in reply
    right = boxed and maths.verify(maths.parse(answer), maths.parse(reply))
    return {"correct": float(right), "format": 0.1 * boxed}


def load(dataset: str, eval_share: float) -> tuple[list[Problem], list[Problem]]:
    """Problems to train on and to evaluate with. Raises UsageError for a file that is not there or has none."""
    if dataset.endswith((".jsonl", ".json")):
        return load_file(Path(dataset), eval_share)
    rows = need("datasets").load_dataset(dataset, "main")
    return [problem_of(row) for row in rows["train"]], [problem_of(row) for row in rows["test"]]


def load_file(path: Path, eval_share: float) -> tuple[list[Problem], list[Problem]]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", "give a JSONL file, or a data set of the hub, as --env.dataset")
    lines = path.read_text(encoding="utf-8").splitlines()
    problems = [problem_of(json.loads(line)) for line in lines if line.strip()]
    kept = max(1, round(len(problems) * eval_share))
    if len(problems) < 2:
        raise UsageError(f"{path} has {len(problems)} problems", "give it two at least, one for evaluation")
    return problems[:-kept], problems[-kept:]


def problem_of(row: dict[str, str]) -> Problem:
    """The final answer only: the way to it stands before the marks in GSM8K."""
    return {"question": row["question"], "answer": str(row["answer"]).rpartition("####")[2].strip()}


def need(module: str) -> Any:
    """A module of the extra `math`. Raises UsageError when it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"gsm8k needs {module}, which is not installed", "pip install 'atropos-tui[math]'") from error


if __name__ == "__main__":
    GSM8kEnv.cli()
