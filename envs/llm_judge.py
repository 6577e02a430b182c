"""A second model compares the replies of a group, pair by pair and criterion by criterion.

Judges favour what they read first or last, so each pair is shown in both orders, and a reply wins a criterion only as
far as both verdicts say so. What the judge said stands in the trajectory, after the reply it speaks of.

A judge that fails, or says nothing that can be read even when asked again, fails the group: no score is made up.

    atropos-tui serve envs/llm_judge.py --env.judge_url URL --env.judge_model JUDGE \\
        --env.tokenizer_name MODEL --openai.model_name MODEL --openai.base_url URL

The judge's key, if it wants one, is taken from the variable JUDGE_API_KEY. A rubric of your own goes into a file that
`--config` names, as a list under `env: rubric:`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, Message, ScoredDataGroup, ServerManager
from atropos_tui.errors import InferenceError

TOPICS = (
    "why the sky is blue", "what a vaccine does", "how a bridge carries its load", "why leap years exist",
    "what money is for", "how bees find their way", "why ice floats", "what an algorithm is", "how a lock works",
    "why we dream", "what gravity does", "how bread rises",
)  # fmt: skip
TASK = "Explain to a child of ten, in three sentences at most: {topic}."
RUBRIC = [
    "accuracy: what it says is true and answers the question",
    "clarity: a child of ten would understand it",
    "brevity: no more than three sentences, and none that could be left out",
]
JUDGE = """Two replies to the same task are below. Compare them on each criterion; a longer reply is no better for that.

Task: {task}

Criteria:
{rubric}

<reply A>
{first}
</reply A>

<reply B>
{second}
</reply B>

Think briefly, then end with one line for each criterion and nothing after it:
{form}"""

Side = Literal["A", "B", "TIE"]
POINTS: dict[tuple[Side, bool], float] = {
    ("A", True): 1.0, ("B", False): 1.0, ("A", False): 0.0, ("B", True): 0.0, ("TIE", True): 0.5, ("TIE", False): 0.5,
}  # fmt: skip


class Task(TypedDict):
    topic: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge said of two replies of a group, given by their places in it, and which it preferred in what."""

    first: int
    second: int
    text: str
    preferred: dict[str, Side]

    def points(self, reply: int, criterion: str) -> float:
        """1 for a criterion won, ½ for a tie."""
        return POINTS[self.preferred[criterion], reply == self.first]


class LlmJudgeConfig(BaseEnvConfig):
    judge_url: str = Field("http://localhost:9002/v1", description="Address of the judge's server")
    judge_model: str = Field("judge", description="Model of the judge")
    judge_max_tokens: int = Field(512, ge=1, description="Tokens a verdict may have")
    judge_attempts: int = Field(2, ge=1, description="How often the judge is asked for a verdict that can be read")
    judge_timeout: int = Field(120, ge=1, description="Seconds until a judge that does not answer has failed")
    rubric: list[str] = Field(RUBRIC, min_length=1, description="Criteria, each as `name: what it means`")
    max_tokens: int = Field(256, ge=1, description="Tokens a reply may have")
    seed: int = Field(7, description="Seed of the topics")


class LlmJudgeEnv(BaseEnv):
    name = "llm_judge"
    env_config_cls = LlmJudgeConfig
    config: LlmJudgeConfig
    cursor_attributes = ("random",)  # which checkpoints keep, so that a run goes on where it was

    @classmethod
    def config_init(cls) -> tuple[LlmJudgeConfig, list[APIServerConfig]]:
        config = LlmJudgeConfig(wandb_name=cls.name, use_wandb=False, group_size=4, max_token_length=1024)
        return config, [APIServerConfig(server_type="vllm", base_url="http://localhost:9001/v1")]

    async def setup(self) -> None:
        self.random = random.Random(self.config.seed)
        self.criteria = [line.partition(":")[0].strip() for line in self.config.rubric]
        self.judge = ServerManager(
            [
                APIServerConfig(
                    base_url=self.config.judge_url, model_name=self.config.judge_model,
                    timeout=self.config.judge_timeout, api_key=os.environ.get("JUDGE_API_KEY", ""),
                )
            ]
        )  # fmt: skip

    async def get_next_item(self) -> Task:
        return {"topic": self.random.choice(TOPICS)}

    async def collect_trajectories(self, item: Task) -> tuple[ScoredDataGroup, list[Task]]:
        task = TASK.format(**item)
        messages = [Message(role="user", content=task)]
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        replies = [choice.message.content or "" for choice in answer.choices]
        verdicts = await self.compare_all(task, replies)
        parts = [self.score_parts(place, verdicts) for place in range(len(replies))]
        return ScoredDataGroup(
            tokens=[node.tokens for node in nodes],
            masks=[node.masked_tokens for node in nodes],
            inference_logprobs=[node.logprobs for node in nodes],
            finish_reasons=[choice.finish_reason for choice in answer.choices],
            scores=[sum(each.values()) for each in parts],
            score_parts=parts,
            messages=[
                [*messages, Message(role="assistant", content=reply), *spoken_of(place, verdicts)]
                for place, reply in enumerate(replies)
            ],
        ), []

    async def compare_all(self, task: str, replies: list[str]) -> list[Verdict]:
        """Every pair in both orders. The first verdict that is not to be had ends the other comparisons too."""
        pairs = itertools.permutations(range(len(replies)), 2)
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self.compare(task, replies, first, second)) for first, second in pairs]
        return [each.result() for each in asked]

    async def compare(self, task: str, replies: list[str], first: int, second: int) -> Verdict:
        """Raises InferenceError when the judge fails, or says nothing that can be read."""
        rubric = "\n".join(f"- {line}" for line in self.config.rubric)
        form = "\n".join(f"{criterion}: A, B or TIE" for criterion in self.criteria)
        question = JUDGE.format(task=task, rubric=rubric, form=form, first=replies[first], second=replies[second])
        text = ""
        for _ in range(self.config.judge_attempts):
            answer = await self.judge.chat_completion(
                messages=[{"role": "user", "content": question}],
                n=1, max_tokens=self.config.judge_max_tokens, temperature=0.0,
            )  # fmt: skip
            text = answer.choices[0].message.content or ""
            preferred = read_verdict(text, self.criteria)
            if preferred is not None:
                return Verdict(first, second, text, preferred)
        raise InferenceError(f"the judge gave no verdict that can be read, but: {text[-200:]!r}", kind="malformed")

    def score_parts(self, reply: int, verdicts: list[Verdict]) -> dict[str, float]:
        """For each criterion the share of points won, over the number of criteria, so that all together are 1."""
        own = [verdict for verdict in verdicts if reply in (verdict.first, verdict.second)]
        return {
            criterion: sum(verdict.points(reply, criterion) for verdict in own) / len(own) / len(self.criteria)
            for criterion in self.criteria
        }

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Comparisons rank the replies of one policy; they say nothing of how good it has become."""


def read_verdict(text: str, criteria: list[str]) -> dict[str, Side] | None:
    """The side preferred on each criterion, by the last line that names it; None unless every criterion has one."""
    preferred: dict[str, Side] = {}
    for criterion in criteria:
        sides = re.findall(rf"^\W*{re.escape(criterion)}\W*:\W*(A|B|TIE)\b\W*$", text, re.IGNORECASE | re.MULTILINE)
        if not sides:
            return None
        preferred[criterion] = sides[-1].upper()
    return preferred


def spoken_of(reply: int, verdicts: list[Verdict]) -> list[Message]:
    """What the judge said of a reply, one message a comparison."""
    said = []
    for verdict in verdicts:
        if reply in (verdict.first, verdict.second):
            side, other = ("A", verdict.second) if reply == verdict.first else ("B", verdict.first)
            said.append(
                Message(role="tool", name="judge", content=f"this reply as {side}, reply {other + 1}:\n{verdict.text}")
            )
    return said


if __name__ == "__main__":
    LlmJudgeEnv.cli()
