"""`process` writes groups to a file and counts honestly; `evaluate` evaluates once; both and `serve` are programs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.runtime.entry_point import mode_defaults, run_command_line, run_mode
from atropos_tui.runtime.processing import ProcessingStopped
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, until, watched

MakeEnv = Callable[..., ScriptedEnv]


def processing_env(make_env: MakeEnv, tmp_path: Path, groups: int, **fields: Any) -> ScriptedEnv:
    path = str(tmp_path / "groups.jsonl")
    fields = {"ensure_scores_are_not_same": False, "total_steps": groups, "data_path_to_save_groups": path, **fields}
    return make_env(**fields)


def lines_of(env: ScriptedEnv) -> list[dict[str, Any]]:
    path = Path(str(env.config.data_path_to_save_groups))
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_process_writes_as_many_groups_as_asked_for_beside_each_other(make_env: MakeEnv, tmp_path: Path):
    env = processing_env(make_env, tmp_path, 20, max_num_workers=5)
    at_once: list[int] = []
    inside = 0

    async def overlap(item: Any) -> Any:
        nonlocal inside
        inside += 1
        at_once.append(inside)
        await asyncio.sleep(0)
        inside -= 1
        return {**good_group(), "note": f"item {item}"}, []

    env.script = overlap
    await env.process_manager()
    assert len(lines_of(env)) == 20
    assert max(at_once) == 5
    assert env.process_mode
    assert env.curr_step == 20
    counts = env._runtime.stream.counts()
    assert counts.balanced
    assert counts.by_outcome["delivered"] == 20
    page = Path(str(env.config.data_path_to_save_groups)).with_suffix(".html")
    assert "<details" in page.read_text()


async def test_a_line_has_what_the_trainer_gets_and_the_further_keys_of_the_environment(
    make_env: MakeEnv, tmp_path: Path
):
    env = processing_env(make_env, tmp_path, 1, include_messages=True)

    async def with_more(item: Any) -> Any:
        return {**good_group(2), "note": {1, 2}, "group_overrides": {"group_size": 2}}, []

    env.script = with_more
    await env.process_manager()
    (line,) = lines_of(env)
    assert line["note"] == [1, 2]
    assert line["ref_logprobs"] is None
    assert line["messages"][0] == [{"role": "user", "content": '!"#$%&'}]
    assert "env_id" not in line


async def test_groups_longer_than_the_limit_are_kept(make_env: MakeEnv, tmp_path: Path):
    env = processing_env(make_env, tmp_path, 1)
    env.max_token_len = 3
    await env.process_manager()
    assert len(lines_of(env)) == 1


async def test_failures_and_skips_are_not_counted_as_groups(make_env: MakeEnv, tmp_path: Path):
    env = processing_env(make_env, tmp_path, 4, max_num_workers=1, ensure_scores_are_not_same=True)

    async def every_other(item: Any) -> Any:
        if item % 4 == 0:
            raise ValueError("bad item")
        if item % 4 == 2:
            return {**good_group(), "scores": [1.0] * 4}, []
        return good_group(), []

    env.script = every_other
    await env.process_manager()
    assert len(lines_of(env)) == 4
    counts = env._runtime.stream.counts()
    assert counts.by_outcome["failed"] == 1
    assert counts.by_outcome["skipped"] == 2


async def test_items_that_end_early_end_the_run_with_what_there_is(make_env: MakeEnv, tmp_path: Path):
    env = processing_env(make_env, tmp_path, 10)
    env.items = iter([1, 2, 3])
    await env.process_manager()
    assert len(lines_of(env)) == 3


@pytest.mark.parametrize("result", [None, "raise"])
async def test_attempts_that_always_come_to_nothing_end_the_run_and_say_why(
    make_env: MakeEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: Any
):
    monkeypatch.setattr("atropos_tui.runtime.processing.PATIENCE", 6)
    env = processing_env(make_env, tmp_path, 3)

    async def nothing(item: Any) -> Any:
        if result == "raise":
            raise KeyError("x")
        return None, []

    env.script = nothing
    with pytest.raises(ProcessingStopped) as raised:
        await env.process_manager()
    assert "0 of 3 groups are written" in str(raised.value)
    assert ("env_error" if result == "raise" else "collect_trajectories") in str(raised.value)
    assert len(env.collected) < 20


async def test_a_number_of_groups_below_one_is_refused(make_env: MakeEnv, tmp_path: Path):
    with pytest.raises(UsageError, match=r"--env\.total_steps"):
        await processing_env(make_env, tmp_path, -1).process_manager()


async def test_an_evaluation_that_fails_is_raised_in_one_line(make_env: MakeEnv):
    env = make_env()

    async def fail() -> Any:
        raise RuntimeError("no data")

    env.evaluation = fail
    with pytest.raises(AtroposError, match="the evaluation failed: RuntimeError: no data"):
        await env.evaluate_manager()


def test_process_changes_the_defaults_that_upstream_changes():
    assert mode_defaults(ScriptedEnv, "process") == {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "use_wandb": True,
        "data_path_to_save_groups": "data/scripted.jsonl",
    }
    assert mode_defaults(ScriptedEnv, "evaluate") == {"use_wandb": True}
    assert mode_defaults(ScriptedEnv, "serve") == {}


async def test_modes_can_be_awaited_in_a_running_loop(
    tokenizer_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    flags = ["--env.tokenizer_name", str(tokenizer_dir), "--env.use_wandb", "false", "--env.max_num_workers", "2"]
    await run_command_line(ScriptedEnv, ["process", "--env.total_steps", "2", *flags])
    assert len((tmp_path / "data" / "scripted.jsonl").read_text().splitlines()) == 2
    assert "total_steps: 2" in (tmp_path / "data" / "scripted.config.yaml").read_text()
    await run_mode(ScriptedEnv, ["evaluate", "--env.data_dir_to_save_evals", "evals", *flags])
    assert "testing: false" in (tmp_path / "evals" / "evaluate_config.yaml").read_text()


async def test_an_evaluation_prints_its_metrics_and_no_configuration_of_another_is_overwritten(
    tokenizer_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    flags = ["--env.tokenizer_name", str(tokenizer_dir), "--env.data_dir_to_save_evals", str(tmp_path)]
    for steps in (7, 8, 8):
        await run_mode(ScriptedEnv, ["evaluate", *flags, "--env.total_steps", str(steps), "--env.use_wandb", "no"])
    assert "| accuracy | 0.5000 |" in capsys.readouterr().out
    configs = {path.name: path.read_text() for path in tmp_path.glob("*.yaml")}  # noqa: ASYNC240  nothing else runs
    assert set(configs) == {"evaluate_config.yaml", "evaluate_config_1.yaml"}
    assert "total_steps: 7" in configs["evaluate_config.yaml"]
    assert "total_steps: 8" in configs["evaluate_config_1.yaml"]


PROGRAM = textwrap.dedent(
    """
    import asyncio
    from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig

    class Echo(BaseEnv):
        name = "echo"

        @classmethod
        def config_init(cls):
            config = BaseEnvConfig(tokenizer_name={tokenizer!r}, use_wandb=False, max_num_workers=2, group_size=2)
            return config, [APIServerConfig(base_url="http://127.0.0.1:9/v1", health_check=False)]

        async def get_next_item(self):
            return "item"

        async def evaluate(self, *args, **kwargs):
            return {{"eval/x": 1.0}}

        async def collect_trajectories(self, item):
            await asyncio.sleep(0.01)
            return {{"tokens": [[1, 2], [1, 3]], "masks": [[-100, 2], [-100, 3]], "scores": [0.0, 1.0]}}, []

    if __name__ == "__main__":
        Echo.cli()
    """
)


@pytest.fixture
def program(tmp_path: Path, tokenizer_dir: Path) -> Path:
    path = tmp_path / "echo_env.py"
    path.write_text(PROGRAM.format(tokenizer=str(tokenizer_dir)))
    return path


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TRANSFORMERS_VERBOSITY": "error"}
    return subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=program.parent, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "choose one of serve, process, evaluate"),
        (["train"], "unknown mode 'train'"),
        (["serve", "--env.group_sise", "2"], "did you mean --env.group_size?"),
        (["process", "--env.tokenizer_name", "./no-such-directory"], "--env.tokenizer_name"),
    ],
)
def test_wrong_use_of_a_program_is_one_line_and_status_2(program: Path, arguments: list[str], words: str):
    ended = run(program, *arguments)
    assert ended.returncode == 2
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    assert words in line
    assert "Traceback" not in ended.stderr


def test_a_program_tells_its_progress_in_plain_lines_and_the_rate_at_the_end(program: Path):
    ended = run(program, "process", "--env.total_steps", "3")
    assert ended.returncode == 0, ended.stderr
    assert "3/3 groups" in ended.stderr.splitlines()[-1]
    assert re.search(r"[\d.]+ groups/(s|min)", ended.stderr.splitlines()[-1])


async def test_a_signal_ends_a_serving_program_in_good_order(program: Path, api: FakeTrajectoryApi):
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(program), "serve", "--env.rollout_server_url", api.url,
        cwd=program.parent, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        await until(lambda: len(api.groups) >= 3, patience=60)
        child.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(child.wait(), 60) == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert api.disconnected == [0]


async def test_a_stop_ends_processing_and_says_how_much_is_written(make_env: MakeEnv, tmp_path: Path):
    env = processing_env(make_env, tmp_path, 1000)
    watched(env)
    run_task = asyncio.create_task(env.process_manager())
    await until(lambda: env.curr_step >= 2)
    env.control.stop()
    with pytest.raises(ProcessingStopped, match="of 1000 groups written"):
        await run_task
    counts = env._runtime.stream.counts()
    assert counts.balanced
    assert counts.by_outcome["in_flight"] == 0


@pytest.mark.parametrize("mode", ["process_manager", "evaluate_manager"])
async def test_a_stop_reaches_a_mode_whose_rollouts_take_long(make_env: MakeEnv, tmp_path: Path, mode: str):
    env = processing_env(make_env, tmp_path, 5)
    inside = asyncio.Event()

    async def hang(*item: Any) -> Any:
        inside.set()
        await asyncio.Event().wait()

    env.script = env.evaluation = hang
    run_task = asyncio.create_task(getattr(env, mode)())
    await inside.wait()
    env.control.stop()
    with pytest.raises(AtroposError, match="stopped"):
        await asyncio.wait_for(run_task, 60)
    assert env._runtime.stream.counts().by_outcome["in_flight"] == 0
