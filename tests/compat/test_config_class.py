"""The config class of an environment is found by whatever name the environment gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.command_line import help_text, parse_settings
from atropos_tui.runtime.config import BaseEnvConfig, config_class

if TYPE_CHECKING:
    from nowhere import SomethingElse


class Own(BaseEnvConfig):
    field: int = 1


class ByName:
    env_config_cls = BaseEnvConfig
    name_config_cls = Own


class ByMethod:
    @classmethod
    def config_cls(cls):
        return Own


class ByAnnotation:
    def __init__(self, config: Own, server_configs, slurm=True):
        pass


class ByEverything(ByAnnotation):
    class Better(Own):
        pass

    env_config_cls = Better


class ByNothing:
    config_cls = "no class"

    def __init__(self, config: SomethingElse):
        pass


@pytest.mark.parametrize(
    ("environment", "config"),
    [
        (ByName, Own),
        (ByMethod, Own),
        (ByAnnotation, Own),
        (ByEverything, ByEverything.Better),
        (ByNothing, BaseEnvConfig),
    ],
)
def test_the_config_class_is_found(environment: type, config: type):
    assert config_class(environment) is config


class NeedsFile(BaseEnvConfig):
    rows_file: str


class NeedsFileEnv(BaseEnv):
    env_config_cls = NeedsFile

    async def get_next_item(self):
        return None

    async def evaluate(self, *args, **kwargs):
        return None


def test_a_field_without_a_default_is_given_by_its_flag():
    settings = parse_settings(NeedsFileEnv, ["--env.rows_file", "rows.json", "--env.group_size", "2"])
    assert (settings.env.rows_file, settings.env.group_size) == ("rows.json", 2)
    assert "--env.rows_file None" in help_text(NeedsFileEnv)
    with pytest.raises(UsageError, match=r"--env\.rows_file .*Field required"):
        parse_settings(NeedsFileEnv, [])
