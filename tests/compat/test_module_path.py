"""Our `atroposlib` is there where it is asked for, its modules are ours, and nobody else sees it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tests.compat.conftest import AUTHOR_FILES, Run

ENABLED = "from atropos_tui.compat.module_path import enable; enable()\n"


def code(text: str) -> str:
    return ENABLED + dedent(text)


def test_a_process_that_imports_atropos_tui_sees_nothing_of_it(python: Run):
    told = python(
        "-c", "import atropos_tui.cli, atropos_tui.compat, importlib.util as u; print(u.find_spec('atroposlib'))"
    )
    assert told.stdout == "None\n", told.stderr


def test_the_same_objects_are_everywhere_and_patches_reach_them(python: Run):
    told = python("-c", code("""
        import subprocess, sys
        from unittest.mock import patch
        import atropos_tui, atroposlib.envs.base
        from atropos_tui.runtime import base_env
        from atroposlib.envs.base import APIServerConfig, BaseEnv, EvalHandlingEnum, Item, OpenaiConfig, ServerBaseline
        from atroposlib.envs.server_handling import openai_server, server_baseline, server_manager
        from atroposlib.envs.server_handling.managed_server import ManagedServer, ManagedServerAdapter, SequenceNode
        from atroposlib.type_definitions import EvaluationSample, GameHistory, Message
        from atroposlib.utils.advantages import compute_grpo_process_supervision_advantages
        assert BaseEnv is atropos_tui.BaseEnv
        assert APIServerConfig is OpenaiConfig is server_manager.APIServerConfig is openai_server.APIServerConfig
        assert ServerBaseline is server_baseline.ServerBaseline
        assert ManagedServer is atropos_tui.ManagedServer
        with patch("atroposlib.envs.base.ServerManager") as patched:
            assert base_env.ServerManager is patched
        assert base_env.ServerManager is atropos_tui.ServerManager is atroposlib.envs.base.ServerManager
        child = "import atropos_tui, atroposlib.envs.base as b; assert b.BaseEnv is atropos_tui.BaseEnv"
        subprocess.run([sys.executable, "-c", child], check=True)
        print("all well")
    """))  # fmt: skip
    assert told.stdout == "all well\n", told.stderr


def test_what_is_missing_is_named_with_what_brings_it(python: Run):
    told = python("-c", code("""
        import atroposlib.envs.base as base
        for statement in ("from atroposlib.envs.base import Nothing", "import atroposlib.envs.reward_fns"):
            try:
                exec(statement)
            except ImportError as error:
                print(error)
        print(hasattr(base, "Nothing"))
    """))  # fmt: skip
    assert told.stdout.splitlines() == [
        "atropos-tui has no Nothing in atroposlib.envs.base; `pip install atroposlib` brings it, if any does",
        "atropos-tui has no atroposlib.envs.reward_fns; `pip install atroposlib` brings it",
        "False",
    ], told.stderr


def test_an_installed_atroposlib_gives_what_we_lack_and_gets_ours_for_the_rest(python: Run, tmp_path: Path):
    installed = tmp_path / "installed" / "atroposlib"
    (installed / "envs" / "reward_fns").mkdir(parents=True)
    for folder in (installed, installed / "envs"):
        (folder / "__init__.py").touch()
    (installed / "envs" / "base.py").write_text("from .server_handling.server_manager import ServerManager\nOLD = 1\n")
    (installed / "envs" / "reward_fns" / "__init__.py").write_text("from atroposlib.envs.base import BaseEnv, OLD\n")
    told = python("-c", code("""
        import atropos_tui
        from atroposlib.envs.reward_fns import BaseEnv, OLD
        assert BaseEnv is atropos_tui.BaseEnv
        print(OLD)
    """), path=installed.parent)  # fmt: skip
    assert told.stdout == "1\n", told.stderr


def test_every_name_that_environments_import_is_there(python: Run):
    told = python("-c", code("""
        from atroposlib.api import app
        from atroposlib.api.utils import grab_batch_with_minimum_allocations
        from atroposlib.envs.base import APIServer, ScoredDataGroup, ScoredDataItem
        from atroposlib.envs.constants import NAMESPACE_SEP
        from atroposlib.envs.eval import EvalBase, eval_runner, evaluate_log, pass_at_k
        from atroposlib.envs.server_handling import managed_server, managed_server_proxy, proxy_client, server_harness
        from atroposlib.envs.server_handling.openai_server import OpenAIServer
        from atroposlib.envs.server_handling.server_baseline import AsyncSemWithAdaptiveWeight, ReasoningConfig
        from atroposlib.envs.server_handling.server_manager import ServerManager, ServerManagerConfig
        from atroposlib.envs.server_handling.sglang_server import SGLangServer
        from atroposlib.envs.server_handling.tool_call_translator import VLLM_AVAILABLE, ToolCallTranslator
        from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
        from atroposlib.envs.server_handling.vllm_server import VLLMServer
        from atroposlib.envs.teacher_distillation_env import TeacherDistillationConfig, TeacherDistillationEnv
        from atroposlib.frontend.jsonl2html import create_html_for_group, generate_html
        from atroposlib.type_definitions import Item, number
        from atroposlib.utils.best_of_n_selection import select_best_index
        from atroposlib.utils.io import parse_http_response
        from atroposlib.utils.message_history_utils import ensure_trajectory_token_limit, truncate_thinking
        from atroposlib.utils.tokenize_for_trainer import tokenize_for_trainer
        from atroposlib.utils.tool_call_parser import parse_tool_call
        print("all there")
    """))  # fmt: skip
    assert told.stdout == "all there\n", told.stderr


def test_workers_load_files_that_were_written_for_it(python: Run, tmp_path: Path):
    file = AUTHOR_FILES / "bare_config_env.py"
    told = python("-m", "atropos_tui.worker", "--run-dir", tmp_path / "run", "--", file, "--env.no_such_field", "1")
    assert told.returncode == 2
    # The file was imported and its config read; what is wrong is only the flag.
    assert "unknown flag --env.no_such_field" in told.stderr, told.stderr
    told = python("-m", "atropos_tui", "serve", file, "--help")
    assert "--openai.base_url 'http://localhost:9123/v1'" in told.stdout, told.stderr
