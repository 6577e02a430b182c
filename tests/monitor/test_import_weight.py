"""What a screen or a script must load to watch a run."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("textual", "transformers", "wandb", "openai", "fastapi", "uvicorn", "numpy", "starlette")


@pytest.mark.parametrize("module", ["client", "supervisor", "discovery", "snapshot"])
def test_watching_loads_nothing_heavy(module: str) -> None:
    lines = f"import sys, atropos_tui.monitor.{module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True, timeout=60)
    assert loaded.stdout.strip() == ""
