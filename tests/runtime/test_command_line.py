"""Flags come before the file, the file before what `config_init` says; what is wrong is named in one line."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import Field

from atropos_tui.errors import UsageError
from atropos_tui.inference import APIServerConfig, ServerBaseline
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.command_line import help_text, parse_settings
from atropos_tui.runtime.config import BaseEnvConfig, EvalHandlingEnum


class Format(Enum):
    CHAT = "chat"
    PLAIN = "plain"


class RichConfig(BaseEnvConfig):
    names: list[str] = Field(default_factory=lambda: ["a"])
    table: dict[str, Any] = Field(default_factory=dict)
    limits: list[int] | None = None
    format: Format = Format.CHAT
    kind: Literal["easy", "hard"] = "easy"
    temperature: float = 1.0
    prompt: str = "Solve:"


def environment(config: BaseEnvConfig | None = None, servers: Any = None) -> type[BaseEnv]:
    class Configured(BaseEnv):
        @classmethod
        def config_init(cls) -> Any:
            return config or RichConfig(group_size=6), servers if servers is not None else ServerBaseline()

        async def get_next_item(self) -> None:
            return None

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            return None

    return Configured


def parse(*arguments: str, servers: Any = None, config: BaseEnvConfig | None = None) -> Any:
    return parse_settings(environment(config, servers), arguments)


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--env.total_steps", "-1"], "total_steps", -1),
        (["--env.max_num_workers", "-1"], "max_num_workers", -1),
        (["--env.max_num_workers=-1"], "max_num_workers", -1),
        (["--env.temperature", "-1e-3"], "temperature", -0.001),
        (["--env.wandb_name", "None"], "wandb_name", None),
        (["--env.limits", "None"], "limits", None),
        (["--env.limits", "[1, 2]"], "limits", [1, 2]),
        (["--env.use_wandb", "false"], "use_wandb", False),
        (["--env.use_wandb", "no"], "use_wandb", False),
        (["--env.use_wandb", "0"], "use_wandb", False),
        (["--env.include_messages", "1"], "include_messages", True),
        (["--env.names", '["x", "y"]'], "names", ["x", "y"]),
        (["--env.names", "x,y"], "names", ["x", "y"]),
        (["--env.table", '{"a": {"b": [1]}}'], "table", {"a": {"b": [1]}}),
        (["--env.format", "plain"], "format", Format.PLAIN),
        (["--env.format", "PLAIN"], "format", Format.PLAIN),
        (["--env.eval_handling", "NONE"], "eval_handling", EvalHandlingEnum.NONE),
        (["--env.kind", "hard"], "kind", "hard"),
        (["--env.prompt", "-- solve {x} = [1]:"], "prompt", "-- solve {x} = [1]:"),
        (["--env.prompt=--x=y"], "prompt", "--x=y"),
        (["--env.prompt", "[not json"], "prompt", "[not json"),
        (["--env.group_size", "3", "--env.group_size", "4"], "group_size", 4),
    ],
)
def test_values_are_read_by_the_type_of_their_field(flags: list[str], field: str, value: Any):
    assert getattr(parse(*flags).env, field) == value


def test_fields_that_are_not_given_keep_what_config_init_says_and_factories_work():
    env = parse().env
    assert (env.group_size, env.names) == (6, ["a"])
    assert type(env) is RichConfig


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--env.group_siz", "4"], ["unknown flag --env.group_siz", "did you mean --env.group_size"]),
        (["--env.group_siz", "None"], ["unknown flag --env.group_siz"]),
        (["--group_size", "4"], ["unknown flag --group_size"]),
        (["--openai.url", "x"], ["unknown flag --openai.url"]),
        (["--env.group_size"], ["--env.group_size needs a value"]),
        (["--env.group_size", "--env.total_steps", "4"], ["--env.group_size needs a value"]),
        (["--env.group_size", "abc"], ["--env.group_size", "'abc'", "integer"]),
        (["--env.group_size", "0"], ["--env.group_size", "'0'", "greater than or equal to 1"]),
        (["--env.max_reasoning_tokens", "5"], ["--env.max_reasoning_tokens", "1024"]),
        (["--env.reasoning_effort", "huge"], ["--env.reasoning_effort", "'huge'", "medium"]),
        (["--env.format", "html"], ["--env.format", "'html'", "chat"]),
        (["--env.kind", "odd"], ["--env.kind", "easy"]),
        (["--env.names", '["x"'], ["--env.names"]),
        (["--env.wandb_name.x", "1"], ["unknown flag --env.wandb_name.x"]),
        (["--openai.timeout", "soon"], ["--openai.timeout", "'soon'"]),
        (["group_size", "4"], ["unexpected argument 'group_size'"]),
        (["--config", "/nowhere.yaml"], ["--config /nowhere.yaml", "No such file"]),
    ],
)
def test_what_is_wrong_is_named_in_one_line(flags: list[str], words: list[str]):
    with pytest.raises(UsageError) as raised:
        parse(*flags)
    told = str(raised.value)
    assert "\n" not in told
    assert all(word in told for word in words), told


def write(path: Path, content: Any) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_flags_come_before_the_file_and_the_file_before_config_init(tmp_path: Path):
    file = write(
        tmp_path / "run.yaml", {"env": {"group_size": 7, "total_steps": 70, "table": {"b": 2}}, "testing": True}
    )
    config = RichConfig(group_size=6, total_steps=60, max_token_length=99, table={"a": 1})
    settings = parse("--config", file, "--env.total_steps", "80", config=config)
    assert (settings.env.group_size, settings.env.total_steps, settings.env.max_token_length) == (7, 80, 99)
    assert settings.env.table == {"a": 1, "b": 2}
    assert settings.manager.testing is True


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("env: [1", ["is not YAML"]),
        ("- 1", ["is not a mapping"]),
        ({"env": [1]}, ["'env'", "not a mapping"]),
        ({"env": {"group_size": "many"}}, ["--env.group_size", "'many'"]),
        ({"openai": [{"base_url": "x", "timeout": "soon"}]}, ["--openai.timeout", "'soon'"]),
        ({"openai": ["http://x"]}, ["'openai'", "mapping"]),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, content: Any, words: list[str]):
    with pytest.raises(UsageError) as raised:
        parse("--config", write(tmp_path / "run.yaml", content))
    told = str(raised.value)
    assert "\n" not in told
    assert all(word in told for word in words), told


def test_a_key_of_the_file_that_nothing_reads_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    assert parse("--config", write(tmp_path / "run.yaml", {"enviroment": {}})).env.group_size == 6
    assert "nothing reads the key 'enviroment'" in caplog.text


ONE = APIServerConfig(base_url="https://api.example.com/v1", api_key="secret", model_name="m")
OTHER = APIServerConfig(base_url="http://other/v1")


def test_a_bare_server_config_is_a_list_of_one_and_keeps_url_and_key():
    assert parse(servers=ONE).servers == [ONE]
    (server,) = parse("--openai.model_name", "n", servers=ONE).servers
    assert (server.base_url, server.api_key, server.model_name) == ("https://api.example.com/v1", "secret", "n")


@pytest.mark.parametrize("default", [ONE, [ONE], [], ServerBaseline(model_name="m"), None])
def test_the_url_that_is_given_is_used_whatever_config_init_returns(default: Any):
    (server,) = parse("--openai.base_url", "http://gpu:9001/v1", servers=default).servers
    assert type(server) is APIServerConfig
    assert server.base_url == "http://gpu:9001/v1"


def test_servers_that_nobody_names_stay_as_config_init_returns_them():
    assert type(parse().servers) is ServerBaseline
    assert parse(servers=[ONE, OTHER]).servers == [ONE, OTHER]


@pytest.mark.parametrize("extra", [["--openai.model_name", "x"], ["--openai.base_url=http://y"]])
def test_flags_for_one_server_are_refused_when_there_are_several(extra: list[str]):
    with pytest.raises(UsageError, match=r"--openai\.\w+ is for one server, and there are 2"):
        parse(*extra, servers=[ONE, OTHER])


def test_a_list_of_servers_in_the_file_replaces_all(tmp_path: Path):
    file = write(tmp_path / "f.yaml", {"openai": [{"base_url": "http://a"}, {"base_url": "http://b"}]})
    assert [server.base_url for server in parse("--config", file, servers=[ONE]).servers] == ["http://a", "http://b"]
    with pytest.raises(UsageError, match="there are 2"):
        parse("--config", file, "--openai.model_name", "x", servers=[ONE])


def test_one_server_in_the_file_changes_the_one_of_config_init(tmp_path: Path):
    for content in ({"model_name": "from file"}, [{"model_name": "from file"}]):
        file = write(tmp_path / "f.yaml", {"openai": content})
        (server,) = parse("--config", file, servers=[ONE]).servers
        assert (server.model_name, server.base_url) == ("from file", ONE.base_url)


def test_switches_may_stand_alone():
    settings = parse("--slurm", "--testing", "false")
    assert (settings.manager.slurm, settings.manager.testing) == (True, False)


def test_the_merged_configuration_is_a_file_that_can_be_read_again_and_holds_no_key(tmp_path: Path):
    settings = parse("--env.group_size", "3", "--env.format", "plain", servers=[ONE])
    text = settings.as_yaml()
    assert "secret" not in text
    again = parse("--config", write(tmp_path / "merged.yaml", text), servers=[ONE])
    assert again.env == settings.env
    assert again.servers == settings.servers


def test_it_is_known_where_each_value_came_from(tmp_path: Path):
    file = write(tmp_path / "f.yaml", {"env": {"total_steps": 5}})
    sources = parse("--config", file, "--env.group_size", "3").sources
    assert sources["env.group_size"] == "flag"
    assert sources["env.total_steps"] == "file"
    assert sources["env.max_token_length"] == "default"
    assert parse().sources["env.group_size"] == "config_init"


def test_unknown_keywords_of_a_config_are_ignored():
    config = RichConfig(group_size=2, start_tok_length=512, dataset_path="x")  # type: ignore[call-arg]
    assert parse(config=config).env.group_size == 2


def test_the_help_names_every_flag_with_its_default():
    text = help_text(environment())
    for words in (
        "--env.group_size 6",
        "--env.format 'chat'",
        "--openai.base_url ''",
        "--slurm False",
        "--config FILE",
    ):
        assert words in text


def test_a_class_that_lacks_a_method_is_named(tokenizer_dir: Path):
    class Lacking(BaseEnv):
        async def get_next_item(self) -> None:
            return None

    settings = parse_settings(Lacking, ["--env.tokenizer_name", str(tokenizer_dir)])
    with pytest.raises(UsageError, match="Lacking lacks evaluate"):
        settings.build(Lacking)
