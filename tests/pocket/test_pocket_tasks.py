"""The pocket tasks beside reverse: the same environment with other answers, and twenty groups from the real policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from atropos_tui import BaseEnv
from atropos_tui.runtime.loading import load_environment
from atropos_tui.shipped import shipped_directory
from tests.envs.conftest import serve_groups
from tests.runtime.serving_parts import FakeTrajectoryApi

MakeEnv = Callable[..., Any]


@pytest.fixture
def api() -> Iterator[FakeTrajectoryApi]:
    server = FakeTrajectoryApi(max_token_len=64).start()
    yield server
    server.stop()


def task(name: str) -> type[BaseEnv]:
    return load_environment(str(shipped_directory("envs") / f"{name}.py"))


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [("reverse", "cab", "bac"), ("sort", "cabba", "aabbc"), ("sort", "a", "a"), ("shift", "abz", "bca")],
)
def test_each_task_wants_its_answer(name: str, text: str, wanted: str) -> None:
    kind: Any = task(name)
    assert kind.wanted(text) == wanted


@pytest.mark.parametrize("name", ["sort", "shift"])
async def test_twenty_groups_from_the_pocket_policy_are_scored_by_the_task(
    policy_url: str, api: FakeTrajectoryApi, name: str, tmp_path: Path
) -> None:
    kind: Any = task(name)
    config, (server,) = kind.config_init()
    changes = {"rollout_server_url": api.url, "instruction": "{text}s", "steps_per_eval": 0, "max_tokens": 4}
    env = kind(config.model_copy(update=changes), [server.model_copy(update={"base_url": f"{policy_url}/v1"})])
    served = await serve_groups(env, api, 20)
    assert sum(served.outcomes().values()) == 20
    assert set(served.outcomes()) <= {"delivered", "skipped identical_scores"}
    assert served.outcomes()["delivered"] > 0
    for content in served.delivered():
        for rollout in content.rollouts:
            asked, said = (message["content"] for message in rollout.messages)
            text = asked.removesuffix("s")
            right = sum(a == b for a, b in zip(kind.wanted(text), said, strict=False))
            assert (rollout.score or 0.0) <= right / len(text)
            assert bool(rollout.score) == bool(right)
