"""A run that is started again goes on where it was: with its data cursor and the items that were not finished."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atropos_tui.runtime.checkpoints import CheckpointFiles
from atropos_tui.runtime.packing import NotPlain, pack, unpack
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


def test_the_newest_checkpoint_not_above_the_step_is_read(tmp_path: Path):
    files = CheckpointFiles(str(tmp_path), "env_0")
    for step in (9, 20, 100):
        files.write(step, {"step": step})
    assert files.newest(99) == (tmp_path / "env_checkpoints" / "env_0" / "step-20.json", {"step": 20})
    assert files.newest(100)[1] == {"step": 100}
    assert files.newest(8) is None


def test_a_checkpoint_is_found_after_another_registration_changed_the_counter_of_the_name(tmp_path: Path):
    CheckpointFiles(str(tmp_path), "my_env_0").write(5, {"who": "my_env"})
    CheckpointFiles(str(tmp_path), "my_env_2_0").write(5, {"who": "another"})
    assert CheckpointFiles(str(tmp_path), "my_env_3").newest(7)[1] == {"who": "my_env"}


def test_a_checkpoint_cut_in_the_middle_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    files = CheckpointFiles(str(tmp_path), "env_0")
    files.write(1, {"step": 1})
    files.write(2, {"step": 2}).write_text('{"ste')
    assert files.newest(5)[1] == {"step": 1}
    assert "step-2.json" in caplog.text


def test_data_that_is_not_json_leaves_the_checkpoint_before_it_alone(tmp_path: Path):
    files = CheckpointFiles(str(tmp_path), "env_0")
    files.write(1, {"step": 1})
    with pytest.raises(TypeError):
        files.write(1, {"step": object()})
    assert files.newest(1)[1] == {"step": 1}


@pytest.mark.parametrize(
    "item",
    [
        1, "text", None, [1, [2.5]], (("user", "hi"), "answer"), {"a": {"b": (1, 2)}}, {"dict": 1, "tuple": [2]},
        (frozenset({("role", "user")}), {1, 2}),
    ],
)  # fmt: skip
def test_items_come_back_equal_from_json(item: Any):
    assert unpack(json.loads(json.dumps(pack(item)))) == item


def test_an_item_that_json_cannot_keep_is_refused():
    with pytest.raises(NotPlain):
        pack({"tensor": object()})


async def test_checkpoints_are_written_when_a_multiple_is_crossed(
    make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path
):
    api.checkpoint_dir, api.checkpoint_interval = str(tmp_path), 10
    env = make_env()
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.status_dict)
        api.step = 25
        await until(lambda: seen.of("checkpoint_saved"))
        (saved,) = seen.of("checkpoint_saved")
    assert saved.step == 20
    assert Path(saved.path) == tmp_path / "env_checkpoints" / "scripted_0" / "step-20.json"


async def test_a_resumed_run_takes_up_unfinished_items_and_then_the_next_of_the_data(
    make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path
):
    api.checkpoint_dir, api.checkpoint_interval = str(tmp_path), 10
    first = make_env(max_num_workers=2)
    forever = asyncio.Event()

    async def hang_at_37(item: Any) -> Any:
        if item >= 36:
            await forever.wait()
        return good_group(), []

    first.script = hang_at_37
    async with serving(first):
        await until(lambda: first.iter == 37 and len(first.workers) == 2)
        api.step = 12
        await until(lambda: first.curr_step == 12)
        first.control.stop()
        first.control.stop()
    api.starting_step = 12
    second = make_env(max_num_workers=1)
    async with serving(second):
        await until(lambda: len(second.collected) >= 4)
    assert sorted(second.collected[:2]) == [36, 37]
    assert second.collected[2:4] == [38, 39]


class Stateful:
    """As a dataset of Hugging Face or a loader of torch tells where it is."""

    def __init__(self) -> None:
        self.row = 0

    def state_dict(self) -> dict[str, Any]:
        return {"row": self.row, "shard": None, "epochs": (1, 2)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert state["epochs"] == (1, 2)
        self.row = state["row"]


class WithCursors(ScriptedEnv):
    cursor_attributes = ("train_index", "rng", "draws", "loader", "order", "rows", "absent")

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.train_index = 0
        self.rng = random.Random(7)
        self.draws = np.random.default_rng(7)
        self.loader = Stateful()
        self.order: list[int] = []
        self.rows = iter([1, 2, 3])


def test_a_cursor_may_be_an_index_a_generator_a_dataset_or_any_plain_value(
    make_env: MakeEnv, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    first, second = make_env(WithCursors), make_env(WithCursors)
    first.train_index, first.order, first.loader.row = 41, [3, 1, 2], 9
    for env in (first, second):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
    for _ in range(5):
        first.rng.random()
        first.draws.random()
    first.save_checkpoint(3)
    assert "leaves out WithCursors.rows, for list_iterator has no state that JSON can keep" in caplog.text
    second.load_checkpoint()
    assert (second.train_index, second.order, second.loader.row) == (41, [3, 1, 2], 9)
    assert second.rng.random() == first.rng.random()
    assert second.draws.random() == first.draws.random()
    assert next(second.rows) == 1


def test_a_dataset_that_cannot_tell_its_state_keeps_nothing_else_out(
    make_env: MakeEnv, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    class Broken(Stateful):
        def state_dict(self) -> dict[str, Any]:
            raise RuntimeError("workers are running")

    env = make_env(WithCursors)
    env.checkpoint_dir, env.train_index, env.loader = str(tmp_path), 12, Broken()
    env.save_checkpoint(3)
    assert "leaves out WithCursors.loader: RuntimeError: workers are running" in caplog.text
    (path,) = tmp_path.rglob("step-3.json")
    assert json.loads(path.read_text())["_place"]["cursor"]["train_index"] == 12


def test_what_only_has_the_name_of_a_cursor_is_left_alone(make_env: MakeEnv, tmp_path: Path):
    first, second = make_env(), make_env()
    first.index, first.current_index = {"a": 1}, 6  # type: ignore[attr-defined]
    second.index = {"b": 2}  # type: ignore[attr-defined]
    for env in (first, second):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
    first.save_checkpoint(3)
    second.load_checkpoint()
    assert second.index == {"b": 2}  # type: ignore[attr-defined]
    assert second.current_index == 6  # type: ignore[attr-defined]


async def test_what_an_author_saves_is_set_again(make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path):
    class Saving(ScriptedEnv):
        solved = 0

        def save_checkpoint(self, step: int, data: Any = None) -> None:
            super().save_checkpoint(step, {"solved": self.solved, "iter": 1000})

    api.checkpoint_dir, api.starting_step = str(tmp_path), 5
    env = make_env(Saving)
    env.checkpoint_dir, env.wandb_prepend, env.solved = str(tmp_path), "scripted_0", 17
    env.save_checkpoint(5)
    again = make_env(Saving)
    async with serving(again):
        await until(lambda: again.collected)
    assert again.solved == 17
    assert min(again.collected) == 1001


async def test_a_resumed_run_without_a_checkpoint_says_so(
    make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    api.checkpoint_dir, api.starting_step = str(tmp_path), 5
    env = make_env()
    with caplog.at_level(logging.WARNING):
        async with serving(env):
            await until(lambda: env.collected)
    assert "no checkpoint for step 5" in caplog.text


async def test_a_checkpoint_that_cannot_be_written_harms_nothing(
    make_env: MakeEnv, api: FakeTrajectoryApi, tmp_path: Path
):
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    api.checkpoint_dir, api.checkpoint_interval = str(blocked), 1
    env = make_env()
    async with serving(env):
        await until(lambda: env.status_dict)
        api.step = 3
        await until(lambda: env.curr_step == 3)
        before = len(api.groups)
        await until(lambda: len(api.groups) > before + 3)
