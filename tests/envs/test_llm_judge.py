"""LLM judge: verdicts that are read or not, a judge with a favourite place, and judges that fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.envs.conftest import environment_module, serve_groups
from tests.envs.scripted_model import Replies, ScriptedModel
from tests.inference.tiny_http_server import Received, TinyHttpServer, answer
from tests.runtime.serving_parts import FakeTrajectoryApi

llm_judge = environment_module("llm_judge")
MakeEnv = Callable[..., Any]
CRITERIA = ["accuracy", "clarity", "brevity"]


def policy() -> Replies:
    """Replies of quality 0 to 3, each with the number of its group."""
    groups = 0

    def replies(prompt: str, n: int) -> list[str]:
        nonlocal groups
        groups += 1
        return [f"quality {place} of group {groups}" for place in range(n)]

    return replies


def verdict(side: str) -> str:
    return "Both are short.\n" + "\n".join(f"{criterion}: {side}" for criterion in CRITERIA)


def honest(prompt: str) -> str:
    first, second = map(int, re.findall(r"quality (\d)", prompt))
    return verdict("A" if first > second else "B")


@pytest.mark.parametrize(
    ("text", "preferred"),
    [
        ("accuracy: A\nclarity: b\nbrevity: tie", ["A", "B", "TIE"]),
        ("I first thought accuracy: A\n\n**accuracy**: B\n- Clarity: A.\nBREVITY : A", ["B", "A", "A"]),
        ("accuracy: A\nclarity: B", None),
        ("accuracy: A or B\nclarity: A\nbrevity: A", None),
        ("", None),
        ("Reply A is better.", None),
    ],
)
def test_a_verdict_is_read_whole_or_not_at_all(text: str, preferred: list[str] | None) -> None:
    read = llm_judge.read_verdict(text, CRITERIA)
    assert (None if read is None else [read[criterion] for criterion in CRITERIA]) == preferred


async def served_with(
    make_env: MakeEnv,
    api: FakeTrajectoryApi,
    tokenizer: Any,
    judge: Callable[[str], str],
    groups: int = 20,
    **fields: Any,
) -> Any:
    async with (
        ScriptedModel(tokenizer, policy()) as model,
        ScriptedModel(tokenizer, lambda prompt, n: [judge(prompt)] * n) as judging,
    ):
        env = make_env(llm_judge.LlmJudgeEnv, model.url, judge_url=judging.url, max_num_workers=4, **fields)
        served = await serve_groups(env, api, groups)
    assert served.servers[1] == (judging.url, True)
    return served


async def test_twenty_groups_are_ranked_by_an_honest_judge(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    served = await served_with(make_env, api, tokenizer, honest)
    assert served.outcomes() == {"delivered": 20}
    for content in served.delivered():
        assert [rollout.score for rollout in content.rollouts] == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
        best = content.rollouts[3]
        assert best.parts == pytest.approx(dict.fromkeys(CRITERIA, 1 / 3))
        _, reply, *judged = best.messages
        assert reply["content"].startswith("quality 3")
        assert len(judged) == 6
        assert {message["name"] for message in judged} == {"judge"}
        assert judged[0]["content"].startswith("this reply as B, reply 1:\nBoth are short.")


async def test_a_rubric_of_ones_own_makes_the_parts(make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any) -> None:
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return "wit: TIE\ncandour: " + honest(prompt)[-1]

    rubric = ["wit: it makes one smile", "candour: it says what it does not know"]
    served = await served_with(make_env, api, tokenizer, judge, groups=2, group_size=2, rubric=rubric)
    assert "- wit: it makes one smile\n- candour: it says what it does not know\n" in asked[0]
    for content in served.delivered():
        assert [dict(rollout.parts) for rollout in content.rollouts] == [
            {"wit": 0.25, "candour": 0.0},
            {"wit": 0.25, "candour": 0.5},
        ]


async def test_a_judge_that_favours_a_place_tells_nothing(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    """Whoever stands first wins, so in both orders together nobody does."""
    served = await served_with(make_env, api, tokenizer, lambda _: verdict("A"))
    assert served.outcomes() == {"skipped identical_scores": 20}
    assert {rollout.score for content in served.contents.values() for rollout in content.rollouts} == {0.5}


async def test_a_judge_that_fails_every_other_time_is_asked_again(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    asked: set[str] = set()

    def judge(prompt: str) -> str:
        if prompt in asked:
            return honest(prompt)
        asked.add(prompt)
        return "I would rather not say."

    served = await served_with(make_env, api, tokenizer, judge)
    assert served.outcomes() == {"delivered": 20}
    assert len(asked) == 20 * 12


async def test_half_of_the_groups_fail_with_a_judge_that_fails_on_half_of_them(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    def judge(prompt: str) -> str:
        number = int(re.findall(r"of group (\d+)", prompt)[0])
        return honest(prompt) if number % 2 else "Both are lovely."

    served = await served_with(make_env, api, tokenizer, judge)
    assert served.outcomes() == {"delivered": 10, "failed inference_error": 10}
    assert len(served.sent) == 10
    for group in served.sent:
        assert group["scores"] == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
    failed = next(end for end in served.ends.values() if end.outcome == "failed")
    assert "the judge gave no verdict that can be read, but: 'Both are lovely.'" in failed.error


async def test_a_judge_that_is_down_fails_its_groups_and_scores_none(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    async def broken(request: Received) -> bytes:
        return answer(500 if request.method == "POST" else 503)

    async with ScriptedModel(tokenizer, policy()) as model, TinyHttpServer(broken) as judging:
        env = make_env(llm_judge.LlmJudgeEnv, model.url, judge_url=f"{judging.root}/v1", judge_timeout=1)
        served = await serve_groups(env, api, 4)
    assert served.servers == {0: (model.url, True), 1: (f"{judging.root}/v1", False)}
    assert served.outcomes() == {"failed inference_error": 4}
    assert served.sent == []
