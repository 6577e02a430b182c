"""Without a terminal a verb that shows the screen says so in one line, before anything is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("verb", "instead"),
    [
        (("demo",), "--headless does without a screen"),
        (("serve", "env.py"), "--headless and --detach do without a screen"),
        (("fleet",), "`atropos-tui ls` prints instead"),
        (("open", "groups.jsonl"), "--once, --json and --plain print instead"),
    ],
)
def test_it_is_said_in_one_line(tmp_path: Path, verb: tuple[str, ...], instead: str) -> None:
    (tmp_path / "groups.jsonl").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "atropos_tui", *verb], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"atropos-tui: the screen needs a terminal, and standard input is none; {instead}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["groups.jsonl"]
