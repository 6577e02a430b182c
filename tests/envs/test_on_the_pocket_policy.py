"""Every environment runs on the pocket policy, for a look: its letters earn nothing, and nothing breaks by them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from atropos_tui.monitor.supervisor import start_process
from atropos_tui.pocket.tokenizer import tokenizer_dir
from atropos_tui.runtime.base_env import BaseEnv
from tests.envs.conftest import Served, environment_module, serve_groups
from tests.runtime.serving_parts import FakeTrajectoryApi

MakeEnv = Callable[..., Any]


@pytest.fixture(scope="module")
def pocket_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "atropos_tui.pocket.server"]
    log_path = tmp_path_factory.mktemp("pocket") / "server.log"
    with start_process(command, ["--port", "0", "--context", "4096"], log_path=log_path) as server:
        yield f"{server.ready['url']}/v1"


async def served(
    make_env: MakeEnv, api: FakeTrajectoryApi, kind: type[BaseEnv], url: str, groups: int = 20, **fields: Any
) -> tuple[Served, Any]:
    env = make_env(kind, url, tokenizer_name=str(tokenizer_dir()), max_tokens=8, **fields)
    env.server.servers[0].config.model_name = "pocket"
    return await serve_groups(env, api, groups), env


@pytest.mark.parametrize(
    ("name", "kind"),
    [("regex_extract", "RegexExtractEnv"), ("gsm8k", "GSM8kEnv"), ("code_execution", "CodeExecutionEnv")],
)
async def test_letters_earn_nothing(
    make_env: MakeEnv, api: FakeTrajectoryApi, pocket_url: str, name: str, kind: str
) -> None:
    if name == "gsm8k":
        pytest.importorskip("math_verify")
    fields = {"isolated": False} if name == "code_execution" else {}  # no code comes of it
    done, _ = await served(make_env, api, getattr(environment_module(name), kind), pocket_url, **fields)
    assert done.outcomes() == {"skipped identical_scores": 20}
    assert {rollout.score for content in done.contents.values() for rollout in content.rollouts} == {0.0}


async def test_a_game_is_lost_turn_by_turn(make_env: MakeEnv, api: FakeTrajectoryApi, pocket_url: str) -> None:
    kind = environment_module("word_game").WordGameEnv
    done, _ = await served(make_env, api, kind, pocket_url, max_turns=2, group_size=2)
    assert done.outcomes() == {"skipped identical_scores": 20}
    for content in done.contents.values():
        for rollout in content.rollouts:
            assert rollout.parts["wasted"] == pytest.approx(-0.2)
            turns = sum(
                before == -100 != token for before, token in zip(rollout.masks, rollout.masks[1:], strict=False)
            )
            assert turns == 2


async def test_a_judge_that_speaks_in_letters_fails_every_group(
    make_env: MakeEnv, api: FakeTrajectoryApi, pocket_url: str
) -> None:
    kind = environment_module("llm_judge").LlmJudgeEnv
    fields = {"judge_url": pocket_url, "judge_model": "pocket", "judge_max_tokens": 8, "judge_attempts": 1}
    done, env = await served(make_env, api, kind, pocket_url, 6, group_size=2, **fields)
    await env.judge.close()
    assert done.outcomes() == {"failed inference_error": 6}
    assert done.sent == []
