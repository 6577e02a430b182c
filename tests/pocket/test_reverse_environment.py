"""The reverse environment: its score, its levels, and groups from a real policy."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from atropos_tui import BaseEnv
from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import EventBase, MetricsLogged
from atropos_tui.runtime.loading import import_file
from atropos_tui.shipped import shipped_directory

reverse = import_file(shipped_directory("envs") / "reverse.py")
MakeEnv = Callable[..., Any]


@pytest.fixture
def make_env(policy_url: str) -> MakeEnv:
    def make(**changes: Any) -> BaseEnv:
        config, (server,) = reverse.ReverseEnv.config_init()
        env: BaseEnv = reverse.ReverseEnv(
            config.model_copy(update=changes), [server.model_copy(update={"base_url": f"{policy_url}/v1"})]
        )
        return env

    return make


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("dcba", 1.0),
        (" dcba\n", 1.0),
        ("dcbb", 0.75),
        ("dcbax", 0.8),
        ("dcb", 0.375),
        ("abcd", 0.0),
        ("", 0.0),
    ],
)
def test_the_score_is_the_share_of_right_letters_and_half_of_it_for_too_few(reply: str, score: float) -> None:
    assert sum(reverse.score_parts("dcba", reply).values()) == pytest.approx(score)


async def test_each_level_is_longer_or_has_more_letters(make_env: MakeEnv) -> None:
    env = make_env()
    await env.setup()
    seen = []
    for env.level in range(1, 20):
        texts = [env.text_of_level(random.Random(seed)) for seed in range(400)]
        (length,) = {len(text) for text in texts}
        seen.append((length, len(set("".join(texts)))))
    assert seen[:5] == [(5, 10), (6, 10), (6, 14), (7, 14), (7, 18)]
    assert all(
        (longer >= length and wider >= letters) and (longer, wider) != (length, letters)
        for (length, letters), (longer, wider) in pairwise(seen)
    )
    assert seen[-1] == (19, 26)


async def test_a_level_is_solved_by_a_whole_window_of_good_groups(make_env: MakeEnv) -> None:
    env = make_env()
    await env.setup()
    for _ in range(reverse.LEVEL_WINDOW):
        assert env.level == 1
        env.level_up_if_solved(1, 0.96)
    assert env.level == 2
    for _ in range(reverse.LEVEL_WINDOW):
        env.level_up_if_solved(1, 1.0)
        env.level_up_if_solved(2, 0.94)
    assert env.level == 2


async def test_a_group_has_what_a_trainer_needs(make_env: MakeEnv) -> None:
    env = make_env(group_size=6)
    await env.setup()
    item = await env.get_next_item()
    group, backlog = await env.collect_trajectories(item)
    assert backlog == []
    assert len(group["tokens"]) == 6
    names = ("tokens", "masks", "inference_logprobs", "messages", "scores", "score_parts")
    for tokens, masks, logprobs, (asked, said), score, parts in zip(*(group[name] for name in names), strict=True):
        prompt = len(item["text"]) + 1
        assert env.tokenizer.decode(tokens[:prompt]) == f"{item['text']}>"
        assert masks == [-100] * prompt + tokens[prompt:]
        assert logprobs[:prompt] == [1.0] * prompt
        assert all(logprob < 0 for logprob in logprobs[prompt:])
        assert asked == {"role": "user", "content": item["text"]}
        assert said["content"] == env.tokenizer.decode(tokens[prompt:], skip_special_tokens=True)
        assert score == sum(parts.values())
        assert parts == reverse.score_parts(item["text"][::-1], said["content"])


async def test_a_model_that_reads_english_gets_an_instruction(make_env: MakeEnv) -> None:
    env = make_env(instruction="turn {text}", group_size=1)
    await env.setup()
    group, _ = await env.collect_trajectories({"text": "abc", "level": 1})
    assert group["messages"][0][0]["content"] == "turn abc"


def written_results(directory: Path) -> dict[str, float]:
    (written,) = directory.rglob("metrics*.json")
    results: dict[str, float] = json.loads(written.read_text())["results"]["all"]
    return results


async def test_an_evaluation_is_written_and_logged_once(make_env: MakeEnv, tmp_path: Path) -> None:
    env = make_env(data_dir_to_save_evals=str(tmp_path))
    events: list[EventBase] = []

    class Collecting:
        def publish(self, event: EventBase) -> None:
            events.append(event)

        def keep(self, content: object) -> None:
            del content

    env.attach(EventStream(Collecting()))
    await env.setup()
    await env.evaluate()
    results = written_results(tmp_path)
    assert 0 <= results["eval/exact"] <= results["eval/mean_score"] <= 1
    await env.wandb_log({"mine": 1.0})
    await env.wandb_log()
    first, second = (event.metrics for event in events if isinstance(event, MetricsLogged))
    assert first["eval/mean_score"] == results["eval/mean_score"]
    assert (first["mine"], first["train/level"], second["train/level"]) == (1.0, 1, 1)
    assert "eval/mean_score" not in second


async def test_the_level_survives_in_a_checkpoint(make_env: MakeEnv, tmp_path: Path) -> None:
    env = make_env()
    await env.setup()
    env.checkpoint_dir, env.level = str(tmp_path), 4
    env.save_checkpoint(100)
    resumed = make_env()
    await resumed.setup()
    resumed.checkpoint_dir, resumed.curr_step = str(tmp_path), 100
    resumed.load_checkpoint()
    assert resumed.level == 4
