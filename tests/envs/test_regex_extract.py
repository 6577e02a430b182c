"""Regex extract: how answers are read, and twenty groups from a model that knows the box, or half knows it, or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.envs.conftest import environment_module, serve_groups
from tests.envs.scripted_model import LOGPROB, ScriptedModel
from tests.runtime.serving_parts import FakeTrajectoryApi

regex_extract = environment_module("regex_extract")
MakeEnv = Callable[..., Any]


@pytest.mark.parametrize(
    ("reply", "correct", "share"),
    [
        ("so it is \\boxed{42}", True, 1.0),
        ("\\boxed{ 42 apples }", True, 1.0),
        ("first \\boxed{41}, no: \\boxed{42}", True, 1.0),
        ("\\boxed{42.0}", True, 1.0),
        ("\\boxed{$42}", True, 1.0),
        ("\\boxed{41}", False, 1.0),
        ("\\boxed{40 or 42}", False, 1.0),
        ("\\boxed{}", False, 0.0),
        ("\\boxed 42", True, 0.5),
        ("\\boxed{42", True, 0.5),
        ("The answer is 42.", True, 0.25),
        ("Answer: **42**", True, 0.25),
        ("42", False, 0.0),
        ("", False, 0.0),
    ],
)
def test_an_answer_is_read_and_its_format_credited(reply: str, correct: bool, share: float) -> None:
    parts = regex_extract.score_parts(reply, 42, 0.2)
    assert parts == pytest.approx({"correct": 0.8 * correct, "format": 0.2 * share})


def test_a_number_may_have_commas() -> None:
    assert regex_extract.number_in("1,234,567") == 1_234_567


def test_each_template_asks_for_what_it_computes() -> None:
    assert [solve(2, 3, 4) for _, solve in regex_extract.TEMPLATES] == [14, 10, 24, 9]
    problem = regex_extract.make_problem(random.Random(0), 20)
    assert problem == regex_extract.make_problem(random.Random(0), 20)
    assert "{" not in problem["question"]


async def test_twenty_groups_of_a_model_that_half_knows_the_format(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    problems: list[Any] = []

    def replies(prompt: str, n: int) -> list[str]:
        place = next(place for place, problem in enumerate(problems) if problem["question"] in prompt)
        answer = problems[place]["answer"]
        if place % 5 == 4:
            return ["I give up"] * n
        return [f"\\boxed{{{answer}}}", f"\\boxed{{{answer + 1}}}", f"The answer is {answer}", "who knows"][:n]

    async with ScriptedModel(tokenizer, replies) as model:
        env = make_env(regex_extract.RegexExtractEnv, model.url, largest=1000)
        next_problem = env.get_next_item

        async def noted() -> Any:
            problems.append(await next_problem())
            return problems[-1]

        env.get_next_item = noted
        served = await serve_groups(env, api, 20)
    assert served.outcomes() == {"delivered": 16, "skipped identical_scores": 4}
    for content in served.delivered():
        assert [rollout.score for rollout in content.rollouts] == pytest.approx([1.0, 0.2, 0.85, 0.0])
        assert content.rollouts[2].parts == pytest.approx({"correct": 0.8, "format": 0.05})
        assert content.rollouts[0].messages[-1]["role"] == "assistant"
    assert len(served.sent) == 16
    for group in served.sent:
        assert not {"score_parts", "finish_reasons"} & set(group)
        for tokens, mask, logprobs in zip(group["tokens"], group["masks"], group["inference_logprobs"], strict=True):
            trained = [token for token in mask if token != -100]
            assert tokens[-len(trained) :] == trained
            assert logprobs[-len(trained) :] == [LOGPROB] * len(trained)


async def test_an_evaluation_is_the_same_problems_each_time(make_env: MakeEnv, tokenizer: Any) -> None:
    asked: list[str] = []

    def replies(prompt: str, n: int) -> list[str]:
        asked.append(prompt)
        return ["\\boxed{-7}"] * n

    async with ScriptedModel(tokenizer, replies) as model:
        env = make_env(regex_extract.RegexExtractEnv, model.url, eval_problems=5)
        await env.setup()
        first = await env.evaluate()
        assert first == await env.evaluate()
        await env.server.close()
    assert sorted(asked[:5]) == sorted(asked[5:])
    assert first == pytest.approx({"eval/correct": 0.0, "eval/score": 0.2})
