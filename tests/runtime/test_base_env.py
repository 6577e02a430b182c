"""The surface that environment files rely on: names, attributes, defaults, and a light import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import atropos_tui
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.config import BaseEnvConfig, EvalHandlingEnum
from tests.runtime.serving_parts import ScriptedEnv, good_group

MakeEnv = Callable[..., ScriptedEnv]

UPSTREAM_DEFAULTS = {
    "group_size": 4, "max_num_workers": -1, "max_eval_workers": 16, "max_num_workers_per_node": 8,
    "steps_per_eval": 100, "max_token_length": 2048, "eval_handling": EvalHandlingEnum.STOP_TRAIN,
    "eval_limit_ratio": 0.5, "inference_weight": 1.0, "batch_size": -1, "max_batches_offpolicy": 3,
    "tokenizer_name": "NousResearch/DeepHermes-3-Llama-3-3B-Preview", "use_wandb": True,
    "rollout_server_url": "http://localhost:8000", "total_steps": 1000, "wandb_name": None,
    "num_rollouts_to_keep": 32, "num_rollouts_per_group_for_logging": 1, "ensure_scores_are_not_same": True,
    "data_path_to_save_groups": None, "data_dir_to_save_evals": None, "min_items_sent_before_logging": 2,
    "include_messages": False, "min_batch_allocation": None, "worker_timeout": 600, "thinking_mode": False,
    "reasoning_effort": None, "max_reasoning_tokens": None, "custom_thinking_prompt": None,
}  # fmt: skip

METHODS = (
    "config_init", "setup", "get_next_item", "evaluate", "collect_trajectory", "collect_trajectories",
    "postprocess_histories", "cleanup", "handle_env", "handle_send_to_api", "add_train_workers", "env_step_checks",
    "env_manager", "process_manager", "evaluate_manager", "register_env", "get_status", "get_server_info",
    "setup_wandb", "wandb_log", "perf_stats", "create_rollout_table", "add_rollouts_for_wandb", "evaluate_log",
    "save_checkpoint", "load_checkpoint", "cli",
)  # fmt: skip


def test_the_config_has_every_field_and_default_of_upstream():
    config = BaseEnvConfig()
    assert {name: getattr(config, name) for name in UPSTREAM_DEFAULTS} == UPSTREAM_DEFAULTS


def test_reasoning_limits_are_checked_when_the_config_is_made():
    for wrong in ({"reasoning_effort": "huge"}, {"max_reasoning_tokens": 100}, {"max_reasoning_tokens": 40_000}):
        with pytest.raises(ValueError):
            BaseEnvConfig(**wrong)


def test_every_method_that_environments_override_or_call_is_there():
    assert [name for name in METHODS if not callable(getattr(BaseEnv, name, None))] == []


def test_attributes_are_as_upstream_leaves_them_after_the_constructor(make_env: MakeEnv):
    env = make_env(max_num_workers=5)
    expected = {
        "workers": set(), "eval_workers": set(), "backlog": [], "rollouts_for_wandb": [], "completion_lengths": [],
        "running_items": {}, "curr_step": 0, "max_token_len": -1, "max_num_workers": 5, "wandb_project": None,
        "wandb_group": None, "wandb_prepend": None, "checkpoint_dir": "", "checkpoint_interval": -1,
        "items_sent_this_step": 0, "eval_runner": None, "jsonl_writer": None, "server_configs": [],
    }  # fmt: skip
    assert {name: getattr(env, name) for name in expected} == expected
    assert env.tokenizer.decode([0, 1]) == " !"


def test_workers_are_counted_for_each_server_when_the_config_does_not_say(make_env: MakeEnv, tokenizer_dir: Path):
    from atropos_tui.inference import APIServerConfig

    servers = [APIServerConfig(base_url=f"http://127.0.0.1:{port}/v1", health_check=False) for port in (1, 2, 3)]
    env = ScriptedEnv(BaseEnvConfig(tokenizer_name=str(tokenizer_dir), max_num_workers_per_node=4), servers)
    assert env.max_num_workers == 12


def test_a_file_of_groups_is_opened_in_the_constructor_and_never_over_an_older_one(make_env: MakeEnv, tmp_path: Path):
    path = tmp_path / "deep" / "groups.jsonl"
    first, second = (make_env(data_path_to_save_groups=str(path)) for _ in range(2))
    assert first.config.data_path_to_save_groups == str(path)
    assert second.config.data_path_to_save_groups == str(path.with_name("groups_1.jsonl"))
    for env in (first, second):
        assert env.jsonl_writer is not None
        env.jsonl_writer.close()


def test_what_environments_replace_after_the_constructor_is_used(make_env: MakeEnv):
    env = make_env()
    env.config = BaseEnvConfig(group_size=2)
    env.max_token_len = 17
    env.completion_lengths = [1]
    assert env._configured_workers() == 0
    assert env.derived_batch_size == -1


async def test_an_environment_with_neither_way_to_collect_says_so(make_env: MakeEnv):
    env = make_env()
    with pytest.raises(NotImplementedError, match="ScriptedEnv has neither"):
        await BaseEnv.collect_trajectory(env, 1)


async def test_single_rollouts_make_a_group_by_default(make_env: MakeEnv):
    class Single(ScriptedEnv):
        collect_trajectories = BaseEnv.collect_trajectories

        async def collect_trajectory(self, item: Any) -> Any:
            group = good_group(1)
            return {name: values[0] for name, values in group.items()}, []

    group, backlog = await make_env(Single, group_size=3).collect_trajectories("item")
    assert len(group["tokens"]) == len(group["scores"]) == 3
    assert backlog == []


def test_the_names_of_the_package_are_the_objects_of_their_modules():
    assert atropos_tui.BaseEnv is BaseEnv
    for name in atropos_tui.__all__:
        assert getattr(atropos_tui, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        atropos_tui.Nothing  # noqa: B018


def test_importing_the_package_or_an_environment_class_loads_nothing_heavy():
    heavy = ("transformers", "wandb", "textual", "fastapi", "torch")
    code = f"import sys, atropos_tui; {{}}; print([name for name in {heavy!r} if name in sys.modules])"
    for use in ("pass", "atropos_tui.BaseEnv"):
        ran = subprocess.run(
            [sys.executable, "-c", code.format(use)], capture_output=True, text=True, timeout=60, check=True
        )
        assert ran.stdout.strip() == "[]", use
