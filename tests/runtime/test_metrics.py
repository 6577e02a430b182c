"""Metrics keep the names that dashboards know, count at the point of truth, and never hold anything up."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from atropos_tui.runtime.metrics import completion_length_metrics, finite_numbers, server_metrics, spread
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


class FakeWandb(SimpleNamespace):
    """The three calls of the wandb package that the runtime makes, at its import."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {}
        self.axes: list[tuple[Any, ...]] = []
        self.logged: list[dict[str, Any]] = []
        self.finished = threading.Event()
        self.let_init_end = threading.Event()
        self.let_init_end.set()
        self.init_error: Exception | None = None
        self.loop_threads: set[int] = set()

    def init(self, **settings: Any) -> Any:
        self.let_init_end.wait(600)
        if self.init_error is not None:
            raise self.init_error
        self.settings = settings
        return SimpleNamespace(define_metric=lambda *names, **more: self.axes.append((*names, more)))

    def log(self, metrics: dict[str, Any], **more: Any) -> None:
        assert not more
        self.logged.append(metrics)

    def finish(self) -> None:
        self.finished.set()

    class Table:
        def __init__(self, columns: list[str]) -> None:
            self.columns, self.rows = columns, []

        def add_data(self, *row: Any) -> None:
            self.rows.append(row)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWandb]:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    yield fake
    fake.let_init_end.set()


def test_completion_lengths_have_real_percentiles_and_the_share_near_the_limit():
    metrics = completion_length_metrics([10] * 95 + [100] * 5, max_token_len=100)
    name = "train/completion_lengths"
    assert metrics[name] == 14.5
    assert (metrics[f"{name}_max"], metrics[f"{name}_min"], metrics[f"{name}_p50"]) == (100, 10, 10)
    assert 10 <= metrics[f"{name}_p95"] < 100
    assert metrics[f"{name}_over_95_percent"] == 0.05
    assert f"{name}_over_95_percent" not in completion_length_metrics([1], max_token_len=-1)
    assert completion_length_metrics([], 10) == {}


def test_a_spread_of_one_value_is_told_too():
    assert spread("x", [2.0]) == {"x_mean": 2.0, "x_std": 0.0, "x_max": 2.0, "x_min": 2.0}
    assert spread("x", []) == {}


def test_only_finite_numbers_are_numbers():
    import numpy as np

    metrics = {"a": 1, "b": np.float32(0.5), "c": float("nan"), "d": "7", "e": None, "f": True, "g": [1, 2]}
    assert finite_numbers(metrics) == {"a": 1.0, "b": 0.5, "f": 1.0}


async def test_all_servers_are_told_not_only_the_last():
    class Server:
        async def wandb_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
            return {**metrics, f"server/{name}_request_time_avg": 1.0}

    metrics = await server_metrics([Server(), Server(), Server()])
    assert sorted(metrics) == [f"server/server_{number}_request_time_avg" for number in range(3)]
    assert await server_metrics([]) == {}


async def test_metrics_are_logged_with_the_offline_stand_in_for_servers_too(make_env: MakeEnv, api: FakeTrajectoryApi):
    config = make_env().config
    env = ScriptedEnv(config, [], testing=True)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(api.groups) > 2)
        api.step = 1
        await until(lambda: seen.of("metrics_logged"))


@pytest.mark.parametrize(("wanted", "rows"), [(-1, 2), (0, 0), (1, 1), (50, 2)])
async def test_the_table_takes_as_many_rollouts_as_there_are(make_env: MakeEnv, wanted: int, rows: int):
    env = make_env(use_wandb=True, num_rollouts_per_group_for_logging=wanted, num_rollouts_to_keep=3)
    for _ in range(5):
        await env.add_rollouts_for_wandb(good_group(2))
    decoded = env._runtime.table.decode()
    assert [len(group) for group in decoded] == [rows] * 3
    assert env._runtime.table.decode() == []


async def test_sent_and_rejected_count_what_became_of_groups(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(max_num_workers=1)
    seen = watched(env)

    async def by_item(item: Any) -> Any:
        if item == "raises":
            raise KeyError("x")
        return {"good": good_group(), "none": None, "same": {**good_group(), "scores": [1.0] * 4}}[item], []

    env.script = by_item
    env.items = iter(["good", "raises", "none", "same"])
    async with serving(env):
        await until(lambda: env.cleanups == 4 and len(api.groups) == 1)
        api.step = 1
        await until(lambda: seen.of("metrics_logged"))
        metrics = seen.of("metrics_logged")[0].metrics
    assert metrics["train/items_sent_to_api"] == 1
    assert metrics["train/items_rejected"] == 2
    assert metrics["groups/skipped/identical_scores"] == 1
    assert metrics["groups/failed/env_error"] == 1
    assert metrics["groups/failed_share"] == 0.25
    assert metrics["groups/trainable_share"] == 0.5
    assert metrics["train_perf/task_duration_mean"] > 0


async def test_steps_are_logged_though_every_group_was_skipped(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    seen = watched(env)

    async def always_the_same(item: Any) -> Any:
        return {**good_group(), "scores": [1.0] * 4}, []

    env.script = always_the_same
    async with serving(env):
        await until(lambda: len(env.collected) > 4)
        for step in (1, 2):
            api.step = step
            await until(lambda step=step: len(seen.of("metrics_logged")) >= step)
    first = seen.of("metrics_logged")[0].metrics
    assert first["train/items_sent_to_api"] == 0
    assert first["groups/skipped/identical_scores"] > 0
    assert not api.groups


async def test_prompt_tokens_are_not_counted_as_completion(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(group_size=2)
    seen = watched(env)

    async def with_a_prompt_of_five(item: Any) -> Any:
        tokens = [1, 2, 3, 4, 5, 7, 8, 9]
        return {"tokens": [tokens] * 2, "masks": [[-100] * 5 + [7, 8, 9]] * 2, "scores": [0.0, 1.0]}, []

    env.script = with_a_prompt_of_five
    async with serving(env):
        await until(lambda: len(api.groups) > 2)
        api.step = 1
        await until(lambda: seen.of("metrics_logged"))
    metrics = seen.of("metrics_logged")[0].metrics
    assert metrics["train/completion_lengths"] == 3
    assert metrics["train/completion_lengths_max"] == 3


async def test_an_override_fills_the_mapping_and_super_merges(
    make_env: MakeEnv, api: FakeTrajectoryApi, wandb: FakeWandb
):
    class Logging(ScriptedEnv):
        async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
            wandb_metrics = wandb_metrics or {}
            wandb_metrics["train/percent_correct"] = 0.75
            await super().wandb_log(wandb_metrics)

    env = make_env(Logging, use_wandb=True, wandb_name="mine")
    async with serving(env):
        await until(lambda: len(api.groups) > 3)
        api.step = 3
        await until(lambda: wandb.logged)
        logged = wandb.logged[0]
    assert logged["mine_0_train/percent_correct"] == 0.75
    assert logged["mine_0_train/completion_lengths"] > 0
    assert logged["trainer_step"] == 3
    table = logged["mine_0_train/rollouts"]
    assert table.columns == ["text", "score"]
    text, score = table.rows[0]
    assert text.startswith('!"#')
    assert score == 0.0
    assert env.rollouts_for_wandb == []
    assert wandb.settings["name"].startswith("mine-")
    assert (wandb.settings["project"], wandb.settings["group"]) == ("project", "group")
    assert ("trainer_step", {}) in wandb.axes
    assert ("*", {"step_metric": "trainer_step"}) in wandb.axes
    assert wandb.finished.wait(60)


async def test_an_init_that_takes_long_holds_no_rollout_up(make_env: MakeEnv, api: FakeTrajectoryApi, wandb: FakeWandb):
    wandb.let_init_end.clear()
    env = make_env(use_wandb=True)
    async with serving(env):
        await until(lambda: len(api.groups) > 10)
        api.step = 1
        await until(lambda: env.curr_step == 1)
        api.step = 2
        await until(lambda: env.curr_step == 2)
        assert not wandb.logged
        wandb.let_init_end.set()
        await until(lambda: wandb.logged)


async def test_wandb_that_cannot_be_reached_is_left_out(
    make_env: MakeEnv, api: FakeTrajectoryApi, wandb: FakeWandb, caplog: pytest.LogCaptureFixture
):
    wandb.init_error = ConnectionError("api.wandb.ai is away")
    env = make_env(use_wandb=True)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(api.groups) > 3)
        api.step = 1
        await until(lambda: seen.of("metrics_logged"))
    assert "api.wandb.ai is away" in caplog.text
    assert seen.states()[-1] == "finished"


async def test_wandb_is_not_imported_when_it_is_not_used(
    make_env: MakeEnv, api: FakeTrajectoryApi, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    env = make_env(use_wandb=False)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(api.groups) > 3)
        api.step = 1
        await until(lambda: seen.of("metrics_logged"))


async def test_an_author_metric_that_raises_is_told_and_harms_nothing(
    make_env: MakeEnv, api: FakeTrajectoryApi, caplog: pytest.LogCaptureFixture
):
    class Broken(ScriptedEnv):
        async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
            raise ZeroDivisionError("no samples yet")

    env = make_env(Broken)
    async with serving(env) as run:
        await until(lambda: env.status_dict)
        api.step = 1
        await until(lambda: "ZeroDivisionError: no samples yet" in caplog.text)
        await asyncio.sleep(0)
        assert not run.done()
