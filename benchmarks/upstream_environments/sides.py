"""The two sides: how a process of each is started, ours or that of atroposlib."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

STAND_INS = Path(__file__).with_name("stand_ins")


@dataclass(frozen=True)
class Side:
    """`name` is "ours" or "upstream"."""

    name: str
    python: str
    checkout: Path
    tokenizer: Path

    @property
    def is_ours(self) -> bool:
        return self.name == "ours"

    def environment_command(self, file: str, mode: str) -> list[str]:
        """The command line of an environment file in a mode, without flags: a script, but ours is served by `serve`."""
        path = str(self.checkout / "environments" / file)
        if not self.is_ours:
            return [self.python, path, mode]
        verb = ["serve", path, "--headless", "--run-dir", "run"] if mode == "serve" else ["run", path, mode]
        return [self.python, "-m", "atropos_tui", *verb]

    def api_command(self, port: int) -> list[str]:
        """The command line of the side's trajectory API."""
        module = "atropos_tui.trajectory_api" if self.is_ours else "atroposlib.cli.run_api"
        return [self.python, "-m", module, "--host", "127.0.0.1", "--port", str(port)]

    def variables(self) -> dict[str, str]:
        """The variables of the side's processes: only upstream's find the checkout's `atroposlib`."""
        path = [STAND_INS] if self.is_ours else [STAND_INS, self.checkout]
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "STAND_IN_TOKENIZER": str(self.tokenizer),
            "STAND_IN_OLD_TEMPLATES": "" if self.is_ours else "1",
            "PYTHONHASHSEED": "0",
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
            "OPENAI_API_KEY": "x",
        }
