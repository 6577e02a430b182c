"""Environments are constructed whatever their `__init__` calls its parameters, and with what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from atropos_tui.inference import APIServerConfig
from atropos_tui.inference.server_harness import ServerHarness
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.command_line import parse_settings
from atropos_tui.runtime.config import BaseEnvConfig


class Plain(BaseEnv):
    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        return None


class OtherNames(Plain):
    def __init__(self, config, server_configs, slurm_job_id=None, testing=False):
        super().__init__(config, server_configs, slurm_job_id, testing)


class NoTesting(Plain):
    def __init__(self, config, server_configs, slurm_config=None):
        super().__init__(config, server_configs, slurm_config, testing=True)


class TwoOnly(Plain):
    def __init__(self, config, server_configs):
        super().__init__(config, server_configs, testing=True)


class Anything(Plain):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class KeywordsOnly(Plain):
    def __init__(self, config, server_configs, *, slurm=True, testing=False):
        super().__init__(config, server_configs, slurm=slurm, testing=testing)


@pytest.mark.parametrize("environment", [Plain, OtherNames, NoTesting, TwoOnly, Anything, KeywordsOnly])
def test_the_switches_arrive_where_there_is_a_place_for_them(environment: type[BaseEnv], tokenizer_dir: Path):
    settings = parse_settings(environment, ["--testing", "true", "--env.tokenizer_name", str(tokenizer_dir)])
    env = settings.build(environment)
    assert [type(server) for server in env.server.servers] == [ServerHarness]


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        (APIServerConfig(base_url="http://here/v1"), ["http://here/v1"]),
        ([APIServerConfig(base_url="http://a"), APIServerConfig(base_url="http://b")], ["http://a", "http://b"]),
        ([], []),
    ],
)
def test_the_server_configs_are_a_list_whatever_was_given(servers, addresses: list[str], tokenizer_dir: Path):
    env = Plain(BaseEnvConfig(tokenizer_name=str(tokenizer_dir), use_wandb=False), servers)
    assert [config.base_url for config in env.server_configs] == addresses


async def test_an_environment_may_speak_to_openais_client_itself(tokenizer_dir: Path):
    servers = [APIServerConfig(base_url="http://localhost:9123/v1", api_key="")]
    env = Plain(BaseEnvConfig(tokenizer_name=str(tokenizer_dir), use_wandb=False), servers)
    assert str(env.client.base_url) == "http://localhost:9123/v1/"
    assert env.client is env.client
    await env.client.close()
