"""Python functions that are run against tests, in a sandbox: nobody knows what a model writes.

The sandbox has the inputs and not the expected results, which are compared outside: a reply cannot cheat by reading the
tests, by ending the program or by printing a verdict. Where the system cannot isolate the code the environment refuses
to start; `--env.isolated false` says that this machine may be risked.

    atropos-tui serve envs/code_execution.py --env.tokenizer_name MODEL \\
        --openai.model_name MODEL --openai.base_url URL

Tasks of your own go into a JSONL file, one `{"prompt", "function", "tests": [[arguments, result], …]}` a line.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
from pathlib import Path
from typing import Any, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, Message, ScoredDataGroup
from atropos_tui.errors import UsageError
from atropos_tui.sandbox import Sandbox, SandboxError, SandboxLimits, SandboxResult

SYSTEM = "Write the function that is asked for, with nothing but Python's standard library, in one ```python block."
CODE_BLOCK = re.compile(r"```(?:python|py)?\s*\n(.*?)```", re.DOTALL)

# What the sandbox runs: one line of JSON for each test, at once, so that a test that hangs takes no other with it.
PROGRAM = """
import io, json, sys
verdicts, sys.stdout = sys.stdout, io.StringIO()
names = {{"__name__": "solution"}}
exec({solution!r}, names)
for arguments in json.loads({inputs!r}):
    try:
        told = {{"result": names[{function!r}](*arguments)}}
    except Exception as error:
        told = {{"error": repr(error)}}
    print(json.dumps(told, default=repr), file=verdicts, flush=True)
"""

TASKS: list[dict[str, Any]] = [
    {
        "prompt": "Write `is_palindrome(text)`: whether a text reads the same backwards, ignoring case and spaces.",
        "function": "is_palindrome",
        "tests": [[["Never odd or even"], True], [["palindrome"], False], [[""], True], [["Abba"], True]],
    },
    {
        "prompt": "Write `running_max(numbers)`: a list with the largest number so far at each place.",
        "function": "running_max",
        "tests": [[[[3, 1, 4, 1, 5]], [3, 3, 4, 4, 5]], [[[]], []], [[[-2, -3, -1]], [-2, -2, -1]]],
    },
    {
        "prompt": "Write `roman(number)`: a number from 1 to 3999 as a Roman numeral.",
        "function": "roman",
        "tests": [[[4], "IV"], [[1994], "MCMXCIV"], [[3999], "MMMCMXCIX"], [[1], "I"]],
    },
    {
        "prompt": "Write `balanced(text)`: whether the brackets ()[]{} in a text are closed in the right order.",
        "function": "balanced",
        "tests": [[["a(b[c]{d})"], True], [["(]"], False], [["(("], False], [[""], True], [[")("], False]],
    },
    {
        "prompt": "Write `collatz_steps(n)`: steps to 1 when even numbers are halved and odd ones become 3n + 1.",
        "function": "collatz_steps",
        "tests": [[[1], 0], [[6], 8], [[27], 111]],
    },
    {
        "prompt": "Write `merge(intervals)`: sorted, with overlapping [start, end] pairs merged, as lists.",
        "function": "merge",
        "tests": [[[[[1, 3], [2, 6], [8, 10]]], [[1, 6], [8, 10]]], [[[]], []], [[[[4, 5], [1, 4]]], [[1, 5]]]],
    },
]


class Task(TypedDict):
    prompt: str
    function: str
    tests: list[list[Any]]


class CodeExecutionConfig(BaseEnvConfig):
    tasks_file: Path | None = Field(None, description="JSONL of tasks, instead of the built-in ones")
    isolated: bool = Field(True, description="Refuse to run code where it cannot be isolated")
    wall_seconds: float = Field(10.0, gt=0.0, description="Seconds a reply's tests may take")
    memory_mib: int = Field(512, ge=64, description="Memory that a reply's code may use")
    sandboxes: int = Field(os.cpu_count() or 1, ge=1, description="Sandboxes at a time")
    weight_of_format: float = Field(0.1, ge=0.0, le=1.0, description="What a block of code is worth; tests: the rest")
    max_tokens: int = Field(1024, ge=1, description="Tokens a reply may have")


class CodeExecutionEnv(BaseEnv):
    name = "code_execution"
    env_config_cls = CodeExecutionConfig
    config: CodeExecutionConfig

    @classmethod
    def config_init(cls) -> tuple[CodeExecutionConfig, list[APIServerConfig]]:
        config = CodeExecutionConfig(wandb_name=cls.name, use_wandb=False, group_size=8, max_token_length=2048)
        return config, [APIServerConfig(server_type="vllm", base_url="http://localhost:9001/v1")]

    async def setup(self) -> None:
        limits = SandboxLimits(wall_seconds=self.config.wall_seconds, memory_bytes=self.config.memory_mib * 2**20)
        self.sandbox = Sandbox(limits, isolated=self.config.isolated)
        try:
            await self.sandbox.check()
        except SandboxError as error:
            remedy = "allow user namespaces, or risk this machine with --env.isolated false"
            raise UsageError(f"untrusted code cannot be isolated here: {error.fault}", remedy) from error
        self.free_sandboxes = asyncio.Semaphore(self.config.sandboxes)
        self.tasks = read_tasks(self.config.tasks_file)
        self.iter = 0  # which checkpoints keep, so that a run goes on where it was

    async def get_next_item(self) -> Task:
        task = self.tasks[self.iter % len(self.tasks)]
        self.iter += 1
        return task

    async def collect_trajectories(self, item: Task) -> tuple[ScoredDataGroup, list[Task]]:
        messages = [Message(role="system", content=SYSTEM), Message(role="user", content=item["prompt"])]
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            answer = await server.chat_completion(
                messages=messages, n=self.config.group_size, max_tokens=self.config.max_tokens, temperature=1.0
            )
            nodes = server.get_state()["nodes"]
        replies = [choice.message.content or "" for choice in answer.choices]
        judged = await asyncio.gather(*(self.judge(reply, item) for reply in replies))
        return ScoredDataGroup(
            tokens=[node.tokens for node in nodes],
            masks=[node.masked_tokens for node in nodes],
            inference_logprobs=[node.logprobs for node in nodes],
            finish_reasons=[choice.finish_reason for choice in answer.choices],
            scores=[sum(parts.values()) for parts, _ in judged],
            score_parts=[parts for parts, _ in judged],
            messages=[
                [
                    *messages,
                    Message(role="assistant", content=reply),
                    Message(role="tool", name="sandbox", content=said),
                ]
                for reply, (_, said) in zip(replies, judged, strict=True)
            ],
        ), []

    async def judge(self, reply: str, task: Task) -> tuple[dict[str, float], str]:
        """What a reply earns, and what is told of its tests. Raises SandboxError when there is no telling."""
        solution = CODE_BLOCK.search(reply)
        if solution is None:
            return {"tests": 0.0, "format": 0.0}, "no block of code"
        program = PROGRAM.format(
            solution=solution[1], inputs=json.dumps([arguments for arguments, _ in task["tests"]]),
            function=task["function"],
        )  # fmt: skip
        async with self.free_sandboxes:
            ran = await self.sandbox.run(program)
        told = read_results(ran)
        outcomes = [
            outcome(wanted, got)
            for (_, wanted), got in itertools.zip_longest(task["tests"], told[: len(task["tests"])])
        ]
        share = outcomes.count("passed") / len(outcomes)
        last_words = [ran.ending, *ran.stderr.strip().splitlines()[-1:]] if ran.ending else []
        said = [f"test {number}: {word}" for number, word in enumerate(outcomes, start=1)]
        weight = self.config.weight_of_format
        return {"tests": (1.0 - weight) * share, "format": weight}, "\n".join([*said, *last_words])

    async def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """One greedy reply to every task."""
        tasks = read_tasks(self.config.tasks_file)
        judged = await asyncio.gather(*map(self.answer_greedily, tasks))
        solved = [parts["tests"] >= 1.0 - self.config.weight_of_format for parts, _ in judged]
        metrics = {"eval/solved": sum(solved) / len(solved)}
        samples = [{"task": task["function"], "told": said} for task, (_, said) in zip(tasks, judged, strict=True)]
        await self.evaluate_log(metrics, samples=samples)
        return metrics

    async def answer_greedily(self, task: Task) -> tuple[dict[str, float], str]:
        answer = await self.server.chat_completion(
            messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": task["prompt"]}],
            n=1, max_tokens=self.config.max_tokens, temperature=0.0, split="eval",
        )  # fmt: skip
        return await self.judge(answer.choices[0].message.content or "", task)


def read_tasks(path: Path | None) -> list[Task]:
    lines = TASKS if path is None else [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Task(prompt=line["prompt"], function=line["function"], tests=line["tests"]) for line in lines]


def read_results(ran: SandboxResult) -> list[Any]:
    """One object a test that was got through, unless the reply's code wrote there itself."""
    told = []
    for line in ran.stdout.splitlines():
        try:
            told.append(json.loads(line))
        except (ValueError, RecursionError):  # not what the program above writes
            break
    return told


def outcome(wanted: Any, got: Any) -> str:
    if not isinstance(got, dict):
        return "not reached"
    if "result" in got:
        return "passed" if got["result"] == wanted else f"gave {got['result']!r:.200}, not {wanted!r:.200}"
    return f"raised {got.get('error')!s:.200}"


if __name__ == "__main__":
    CodeExecutionEnv.cli()
