"""What environments of atroposlib do with the classes that they derive from, and with what they are given."""

from __future__ import annotations

import json
from pathlib import Path

from atropos_tui.inference import APIServerConfig, ManagedServer, ServerBaseline
from atropos_tui.inference.openai_server import OpenAIServer
from atropos_tui.inference.server_harness import ServerHarness
from atropos_tui.inference.server_manager import ServerManager
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.config import BaseEnvConfig
from tests.compat.conftest import Run
from tests.compat.test_running import run_env


def test_rollouts_one_by_one_lists_of_groups_and_none_make_a_file_of_groups(
    python: Run, tokenizer_dir: Path, tmp_path: Path
):
    told = run_env(
        python, "games_env.py", "process", tokenizer_dir, "--env.total_steps", "3", "--env.max_num_workers", "1",
        "--env.data_path_to_save_groups", "groups.jsonl",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("games begin\n")
    groups = [json.loads(line) for line in (tmp_path / "groups.jsonl").read_text().splitlines()]
    # Items 1 and 5 are odd, 2 and 4 give a group each, and 3 gives the two rounds.
    assert [group.get("turn") for group in groups] == [None, "deal", "play", None]
    assert groups[1]["images"] == [None, "data:image/png;base64,"]
    assert groups[0]["scores"] == [1.0, 1.0]
    assert groups[0]["finish_reason"] == ["stop", "stop"]
    assert groups[0]["tokens"][0] == groups[0]["tokens"][1]
    assert groups[0]["masks"][0][0] == -100


class ReadByHand(OpenAIServer):
    """A server class of an author's."""


class Plain(BaseEnv):
    server_cls = ReadByHand

    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        return None


def test_the_server_class_of_an_environment_serves_whatever_the_configs_say(tokenizer_dir: Path):
    config = BaseEnvConfig(tokenizer_name=str(tokenizer_dir), use_wandb=False)
    servers = [APIServerConfig(base_url="http://here/v1", server_type="vllm", health_check=False)]
    env = Plain(config, servers)
    assert [type(server) for server in env.server.servers] == [ReadByHand]
    assert env.server.servers[0].config.base_url == "http://here/v1"
    env.server.servers[0].server_healthy = True


def test_an_environment_without_a_server_of_its_own_has_those_of_convention(tokenizer_dir: Path):
    config = BaseEnvConfig(tokenizer_name=str(tokenizer_dir), use_wandb=False)
    env = Plain(config, ServerBaseline(model_name="small"))
    assert [server.config.base_url for server in env.server.servers] == [
        f"http://localhost:{port}/v1" for port in range(9004, 9008)
    ]


async def test_methods_of_sessions_may_be_replaced_from_outside(monkeypatch, tokenizer_dir: Path):
    server = ServerManager([APIServerConfig(model_name=str(tokenizer_dir))], testing=True).servers[0]
    assert isinstance(server, ServerHarness)
    found = []
    find = ManagedServer._find_extending_node

    def watched(self, text):
        found.append(text)
        return find(self, text)

    monkeypatch.setattr(ManagedServer, "_find_extending_node", watched)
    managed = ManagedServer(server)
    await managed.completion(prompt="one", n=1, max_tokens=2)
    assert found == ["one"]
    assert [node.full_text[:3] for node in managed.current_nodes] == ["one"]
    managed.current_nodes.clear()
    assert managed.get_state()["nodes"] == []
