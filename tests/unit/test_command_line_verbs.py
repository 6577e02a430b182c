"""The command line: what it refuses, in one line with a remedy, and what it does not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from atropos_tui.cli import main

ENVIRONMENT = """
from atropos_tui import BaseEnv

class Echo(BaseEnv):
    async def get_next_item(self): ...
    async def evaluate(self): ...
"""


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line on stderr of a command that ends with status 2."""
    assert main(argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    return lines[0]


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ((), "demo"),
        (("sreve",), "'sreve'"),
        (("demo", "--seconds", "soon"), "--seconds"),
        (("demo", "--headless", "--seconds", "-5"), "--seconds -5"),
        (("demo", "--headless", "--seconds", "nan"), "--seconds nan"),
        (("demo", "--json"), "--headless"),
        (("demo", "--fast"), "--fast"),
        (("serve",), "FILE[:CLASS]"),
        (("serve", "--env.group_size", "8", "env.py"), "first"),
        (("attach", "/nowhere"), "/nowhere"),
        (("api", "--port", "high"), "--port"),
    ],
)
def test_wrong_use_is_one_line_that_names_the_fault(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], names: str
) -> None:
    assert names in refusal(capsys, *argv)


@pytest.mark.parametrize(
    ("source", "flags", "names"),
    [
        (None, (), "missing.py"),
        ("x = 1\n", (), "no environment"),
        ("this is not python\n", (), "broken.py"),
        ("import a_module_that_nobody_has\n", (), "a_module_that_nobody_has"),
        (ENVIRONMENT + ENVIRONMENT.replace("Echo", "Other"), (), "Echo, broken.py:Other"),
        ("from atropos_tui import BaseEnv\nclass Half(BaseEnv): ...\n", (), "Half lacks evaluate"),
        (ENVIRONMENT, ("--env.grup_size", "8"), "grup_size"),
        (ENVIRONMENT, ("--env.group_size", "many"), "group_size"),
        (ENVIRONMENT, ("--env.tokenizer_name", "/no/tokenizer"), "tokenizer"),
    ],
)  # fmt: skip
def test_an_environment_that_cannot_run_is_refused_before_the_screen_opens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, source: str | None, flags: tuple[str, ...], names: str
) -> None:
    file = tmp_path / ("missing.py" if source is None else "broken.py")
    if source is not None:
        file.write_text(source)
    assert names in refusal(capsys, "serve", str(file), "--run-dir", str(tmp_path / "run"), "--headless", *flags)


def test_help_costs_no_screen_and_no_tokenizer() -> None:
    script = (
        "import sys; import atropos_tui.cli; "
        "print([m for m in ('textual', 'transformers', 'wandb', 'openai', 'httpx', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_screen_loads_no_runtime() -> None:
    script = (
        "import sys; import atropos_tui.verbs.screen; "
        "print([m for m in ('transformers', 'wandb', 'openai', 'numpy', 'fastapi') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_theme_that_is_not_there_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--theme", "mauve"]) == 2
    assert "there is no theme 'mauve'; the themes are dusk" in capsys.readouterr().err
