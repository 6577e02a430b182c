"""Runs started and commanded as a person does: with the command line, in processes of their own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from atropos_tui.cli import main
from tests.end_to_end.marked_processes import MarkedProcesses, wait_until

# Scores need no model here: the way of groups is what is looked at.
ENVIRONMENT = """\
import asyncio
from atropos_tui import BaseEnv
from tests.process_state import is_alive


class Counting(BaseEnv):
    name = "counting"
    taken = 0

    async def get_next_item(self):
        self.taken += 1
        return f"item {self.taken}"

    async def collect_trajectories(self, item):
        await asyncio.sleep(0.05)
        messages = [[{"role": "user", "content": f"question of {item}"}]] * 4
        return {
            "tokens": [[65, 66, 67]] * 4, "masks": [[-100, 66, 67]] * 4, "scores": [0.0, 1.0, 0.5, 0.25],
            "messages": messages,
        }, []

    async def evaluate(self, *args, **kwargs):
        pass
"""


class ServedRuns:
    """Runs under a root of their own. Every process carries a mark, so that none is left."""

    def __init__(self, directory: Path, processes: MarkedProcesses, tokenizer: Path, api_url: str) -> None:
        self.root = directory / "runs"
        self.processes = processes
        self.file = directory / "counting.py"
        self.file.write_text(ENVIRONMENT)
        self._flags = [
            "--env.tokenizer_name", str(tokenizer), "--env.rollout_server_url", api_url, "--env.use_wandb", "false",
            "--env.max_batches_offpolicy", "0", "--env.max_num_workers", "2", "--env.include_messages", "true",
            # What other tests left in the queue must not count as all that the trainer will ever want.
            "--env.total_steps", "1000000",
        ]  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        return self.processes.environment | {"ATROPOS_TUI_RUNS": str(self.root)}

    def command(self, *argv: object) -> list[str]:
        return [sys.executable, "-m", "atropos_tui", *map(str, argv)]

    def serve_command(self, run_dir: Path, *options: str) -> list[str]:
        return self.command("serve", self.file, "--run-dir", run_dir, *options, *self._flags)

    def run(self, *argv: object, status: int = 0) -> str:
        """What a command prints; its exit status must be this one. Runs here, for a process takes a second to begin."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with redirect_stdout(out):
            ended = main([str(argument) for argument in argv])
            out.flush()
        out.seek(0)
        printed = out.read()
        assert ended == status, f"{argv} ended with {ended}: {printed}"
        return printed

    def serve(self, name: str, *options: str) -> Path:
        """The directory of a run that was started and left alone."""
        run_dir = self.root / name
        done = subprocess.run(
            self.serve_command(run_dir, "--detach", *options),
            env=self.environment, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout.strip()) == (0, str(run_dir)), done.stderr
        return run_dir

    def worker(self, run_dir: Path) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((run_dir / "worker.json").read_text())
        return told

    def status(self, run: object, status: int = 0) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.run("status", run, "--json", status=status))
        return told

    def wait_for_groups(self, run: object, count: int) -> dict[str, Any]:
        """The status once so many groups are delivered."""
        seen: list[dict[str, Any]] = []

        def enough() -> bool:
            seen.append(self.status(run))
            delivered: int = seen[-1]["ledger"]["by_outcome"]["delivered"]
            return delivered >= count

        wait_until(enough)
        return seen[-1]
