"""What holds of every example: it is short, listed, checked, and runs from the command line as it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from atropos_tui.runtime.loading import load_environment
from atropos_tui.shipped import shipped_directory
from tests.ports import held_port

ENVS = shipped_directory("envs")
FILES = sorted(ENVS.glob("*.py"))
MOST_LINES = 215


def test_there_are_examples_and_the_type_checker_knows_all_of_them() -> None:
    settings = tomllib.loads((ENVS.parent / "pyproject.toml").read_text())
    assert settings["tool"]["mypy"]["modules"] == [path.stem for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_an_example_is_short_listed_and_named_after_its_file(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert f"[`{path.name}`]({path.name})" in (ENVS / "README.md").read_text()
    kind = load_environment(str(path))
    assert kind.name == path.stem
    config, servers = kind.config_init()
    assert config.wandb_name == path.stem
    assert not config.use_wandb
    assert servers
    # Where it is in its data comes back from a checkpoint.
    assert {"random", "iter"} & set(kind.cursor_attributes)


def test_the_look_without_a_model_that_the_readme_shows(tmp_path: Path) -> None:
    """All of it but the screen at the end."""
    (shown,) = re.findall(r"```\n(python -m .*?)```", (ENVS / "README.md").read_text(), re.DOTALL)
    *commands, _ = shown.strip().split("\natropos-tui open")
    tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (tmp_path / "envs").symlink_to(ENVS)
    with held_port() as port:
        script = f"trap 'kill $(jobs -p)' EXIT\n{commands[0].replace('9001', str(port))}\n"
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=os.environ | tools, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    groups = [json.loads(line) for line in (tmp_path / "groups.jsonl").read_text().splitlines()]
    assert len(groups) == 5
    assert groups[0]["score_parts"][0] == {"correct": 0.0, "format": 0.0}


def test_an_example_runs_as_a_program_and_lists_its_fields() -> None:
    command = [sys.executable, str(ENVS / "sort.py"), "serve", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "env.first_letters" in done.stdout
