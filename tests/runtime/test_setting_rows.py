"""The configuration for people: every value, where it is from, and no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ConfigDict, Field

from atropos_tui.inference import APIServerConfig, ServerBaseline
from atropos_tui.ledger.events import Setting
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.command_line import parse_settings
from atropos_tui.runtime.config import BaseEnvConfig
from atropos_tui.runtime.masking import is_secret, plain_values
from atropos_tui.runtime.setting_rows import changed_since, setting_rows


class JudgedConfig(BaseEnvConfig):
    judge_api_key: str = ""
    judge_url: str = "https://user:word@judge/v1"
    judges: list[dict[str, Any]] = Field(default_factory=list)
    topics: list[str] = Field(default_factory=lambda: ["sums"])


def rows_of(servers: Any, *flags: str) -> dict[str, tuple[str, str]]:
    class Judged(BaseEnv):
        @classmethod
        def config_init(cls) -> Any:
            return JudgedConfig(group_size=6), servers

        async def get_next_item(self) -> None:
            return None

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            return None

    return {row.name: (row.value, row.source) for row in setting_rows(parse_settings(Judged, flags))}


def file_with(path: Path, content: dict[str, Any]) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("api_key", True), ("JUDGE_API_KEY", True), ("hf_token", True), ("db_password", True), ("client_secret", True),
        ("max_token_length", False), ("tokenizer_name", False), ("stop_tokens", False), ("keyword", False),
    ],
)  # fmt: skip
def test_secrets_are_known_by_their_names(name: str, secret: bool):
    assert is_secret(name) is secret


def test_each_value_is_told_with_its_source(tmp_path: Path):
    file = file_with(tmp_path / "run.yaml", {"env": {"total_steps": 5, "topics": ["sums", "words"]}, "testing": True})
    rows = rows_of(ServerBaseline(), "--config", file, "--env.max_num_workers=-1", "--env.wandb_name", "None")
    assert rows["env.group_size"] == ("6", "config_init")
    assert rows["env.total_steps"] == ("5", "run.yaml")
    assert rows["env.topics"] == ('["sums", "words"]', "run.yaml")
    assert rows["env.max_num_workers"] == ("-1", "command line")
    assert rows["env.wandb_name"] == ("None", "command line")
    assert rows["env.eval_handling"] == ("STOP_TRAIN", "class default")
    assert rows["testing"] == ("True", "run.yaml")
    assert rows["slurm"] == ("False", "class default")


def test_each_of_several_servers_has_rows_of_its_own(tmp_path: Path):
    entries = [{"base_url": "http://one/v1", "api_key": "open sesame"}, {"base_url": "http://two/v1"}]
    rows = rows_of(
        [APIServerConfig(model_name="mine")], "--config", file_with(tmp_path / "two.yaml", {"openai": entries})
    )
    assert rows["openai[0].base_url"] == ("http://one/v1", "two.yaml")
    assert rows["openai[0].api_key"] == ("***", "two.yaml")
    assert rows["openai[1].base_url"] == ("http://two/v1", "two.yaml")
    assert rows["openai[1].api_key"] == ("", "class default")
    assert rows["openai[1].model_name"] == ("default", "class default")


def test_one_server_is_changed_by_file_and_flags(tmp_path: Path):
    file = file_with(tmp_path / "one.yaml", {"openai": {"timeout": 7}})
    own = APIServerConfig(model_name="mine", base_url="http://mine/v1")
    for servers in (own, [own]):
        rows = rows_of(servers, "--config", file, "--openai.base_url", "http://theirs/v1")
        assert rows["openai.model_name"] == ("mine", "config_init")
        assert rows["openai.timeout"] == ("7", "one.yaml")
        assert rows["openai.base_url"] == ("http://theirs/v1", "command line")


def test_secrets_are_neither_shown_nor_kept_and_empty_ones_are_seen_to_be_empty():
    key = "open sesame"
    rows = rows_of(APIServerConfig(), "--env.judge_api_key", key, "--openai.api_key", key)
    assert rows["env.judge_api_key"] == ("***", "command line")
    assert rows["openai.api_key"] == ("***", "command line")
    assert rows["env.judge_url"] == ("https://***@judge/v1", "class default")
    assert rows_of(APIServerConfig())["env.judge_api_key"] == ("", "class default")
    assert plain_values(JudgedConfig(judges=[{"api_key": key, "model": "m"}]))["judges"] == [
        {"api_key": "***", "model": "m"}
    ]


def test_a_field_of_any_type_is_shown_and_written_and_secrets_are_not():
    class Odd(JudgedConfig):
        model_config = ConfigDict(arbitrary_types_allowed=True)

        judge: Any = Field(default_factory=object)

    class OddEnv(BaseEnv):
        env_config_cls = Odd

        async def get_next_item(self) -> None:
            return None

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            return None

    settings = parse_settings(OddEnv, ["--env.judge_api_key", "open sesame"])
    merged = yaml.safe_load(settings.as_yaml())["env"]
    assert "object" in merged["judge"]
    assert "judge_api_key" not in merged
    assert merged["judge_url"] == "https://judge/v1"
    assert merged["eval_handling"] == "STOP_TRAIN"
    assert "object" in next(row.value for row in setting_rows(settings) if row.name == "env.judge")


def test_what_the_constructor_changes_is_told():
    config = JudgedConfig()
    settings = rows_of(APIServerConfig())
    assert settings["env.total_steps"][0] == "1000"
    given = tuple(Setting(name=name, value=value, source=source) for name, (value, source) in settings.items())
    changed = {
        row.name: row for row in changed_since(given, config.model_copy(update={"group_size": 6, "total_steps": 3}))
    }
    assert (changed["env.total_steps"].value, changed["env.total_steps"].source) == ("3", "the environment's code")
    assert changed["env.group_size"].source == "config_init"
