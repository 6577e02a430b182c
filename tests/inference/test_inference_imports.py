"""What importing the clients loads; in a process of its own, the only way to know."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("openai", "transformers", "wandb", "textual", "numpy", "torch", "fastapi", "uvicorn")


def test_importing_the_clients_loads_nothing_heavy() -> None:
    code = f"import sys, atropos_tui.inference; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
