"""GSM8K: its problems from a file, answers compared as mathematics, and what it says when something is missing."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.errors import UsageError
from tests.envs.conftest import environment_module, serve_groups
from tests.envs.scripted_model import ScriptedModel
from tests.runtime.serving_parts import FakeTrajectoryApi

gsm8k = environment_module("gsm8k")
MakeEnv = Callable[..., Any]


def test_the_problems_that_come_with_it_are_right() -> None:
    """Each step of their solutions is computed again."""
    lines = [json.loads(line) for line in gsm8k.SAMPLE.read_text().splitlines()]
    assert len(lines) == 12
    for line in lines:
        steps = re.findall(r"<<(.+?)=(.+?)>>", line["answer"])
        for left, right in steps:
            assert re.fullmatch(r"[\d+\-*/. ]+", left)
            assert eval(left) == pytest.approx(float(right)), line["question"]
    train, test = gsm8k.load(str(gsm8k.SAMPLE), 0.2)
    assert (len(train), len(test)) == (10, 2)
    assert train[0]["answer"] == "29"


@pytest.mark.parametrize(
    ("reply", "correct", "boxed"),
    [
        ("\\boxed{3.5}", 1.0, 0.1),
        ("so \\boxed{\\frac{7}{2}}", 1.0, 0.1),
        ("\\boxed{7/2}", 1.0, 0.1),
        ("\\boxed{35}", 0.0, 0.1),
        ("\\boxed{}", 0.0, 0.1),
        ("3.5", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_answers_are_compared_as_mathematics(reply: str, correct: float, boxed: float) -> None:
    pytest.importorskip("math_verify")
    assert gsm8k.score_parts(reply, "3.5") == {"correct": correct, "format": boxed}


async def test_twenty_groups_are_scored_by_their_answers(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    pytest.importorskip("math_verify")
    answers = {problem["question"]: problem["answer"] for problem in gsm8k.load(str(gsm8k.SAMPLE), 0.2)[0]}

    def replies(prompt: str, n: int) -> list[str]:
        answer = next(answer for question, answer in answers.items() if question in prompt)
        if answer in ("29", "810"):
            return [f"\\boxed{{{answer}}}"] * n
        return [f"\\boxed{{{answer}.0}}", "\\boxed{-1}", answer, f"It is \\boxed{{{answer}}}."]

    async with ScriptedModel(tokenizer, replies) as model:
        served = await serve_groups(make_env(gsm8k.GSM8kEnv, model.url), api, 20)
    assert served.outcomes() == {"delivered": 16, "skipped identical_scores": 4}
    for content in served.delivered():
        assert [rollout.score for rollout in content.rollouts] == pytest.approx([1.1, 0.1, 0.0, 1.1])
        assert content.rollouts[1].parts == {"correct": 0.0, "format": 0.1}


async def test_an_evaluation_takes_the_problems_that_are_not_trained_on(make_env: MakeEnv, tokenizer: Any) -> None:
    pytest.importorskip("math_verify")
    async with ScriptedModel(tokenizer, lambda _, n: ["\\boxed{315}"] * n) as model:
        env = make_env(gsm8k.GSM8kEnv, model.url)
        await env.setup()
        assert await env.evaluate() == {"eval/correct": 0.5}
        await env.server.close()


async def test_without_the_extra_it_says_what_to_install(make_env: MakeEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(UsageError, match=r"gsm8k needs math_verify.*pip install 'atropos-tui\[math\]'"):
        await make_env(gsm8k.GSM8kEnv, "http://127.0.0.1:9/v1").setup()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"gsm8k needs datasets.*pip install 'atropos-tui\[math\]'"):
        gsm8k.load("openai/gsm8k", 0.2)


def test_a_file_that_is_not_there_or_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        gsm8k.load(str(tmp_path / "missing.jsonl"), 0.2)
    short = tmp_path / "short.jsonl"
    short.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    with pytest.raises(UsageError, match="has 1 problems"):
        gsm8k.load(str(short), 0.2)
