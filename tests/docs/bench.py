"""Everything that a reader of the documentation has at hand, and commands carried out in its midst.

A trajectory API with a trainer, the pocket policy as inference server, environment files, a run that goes on, one that
ended and one to stop; all on free ports of loopback, in a directory of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from atropos_tui.pocket.tokenizer import tokenizer_dir
from tests.docs.pages import ROOT
from tests.end_to_end.marked_processes import MarkedProcesses, wait_until
from tests.verbs.terminal import Terminal

PATIENCE = 120.0


class Bench:
    """`carry_out` a command as it stands in the documentation, with the placeholders filled in."""

    def __init__(self, directory: Path, api: str, policy: str) -> None:
        self.directory = directory
        self.processes = MarkedProcesses()
        self._api, self._policy = api, policy
        self._place = directory
        self.sit_down("start")

    def sit_down(self, name: str) -> None:
        """Go on in another directory, which has the files that the documentation speaks of."""
        self._place = self.directory / name
        self._place.mkdir()
        (self._place / "envs").symlink_to(ROOT / "envs")
        for file in ("their_env.py", "my_env.py"):
            shutil.copy(ROOT / "envs" / "reverse.py", self._place / file)
        token = self._place / "token"
        token.write_text("secret\n")
        token.chmod(0o600)

    @property
    def environment(self) -> dict[str, str]:
        return self.processes.environment | {
            "ATROPOS_TUI_RUNS": str(self.directory / "runs"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HF_HUB_OFFLINE": "1",
            "WANDB_MODE": "offline",
            "KEY": "none",
        }

    @property
    def flags(self) -> str:
        """What leads an environment to the servers that are here."""
        return f"--env.rollout_server_url {self._api} --openai.base_url {self._policy}/v1"

    def filled_in(self, text: str) -> str:
        """The command with what is really here in the place of names and ports."""
        replaced = {
            r"http://localhost:9001/v1": f"{self._policy}/v1",
            r"http://localhost:8000": self._api,
            r"--port 8000": "--port 0",
            r"\bMODEL\b|Qwen/Qwen3-4B": str(tokenizer_dir()),
            r"\[RUN\]|\bRUN\b": "going",
            r"\bPATH\b": str(self.directory / "runs" / "ended" / "run.db"),
            r"…": self.flags,
        }
        for pattern, real in replaced.items():
            text = re.sub(pattern, real, text)
        return text

    def finishes(self, text: str, statuses: tuple[int, ...] = (0,)) -> str:
        """What it prints; it must end by itself with one of these statuses."""
        done = subprocess.run(
            ["sh", "-c", self.filled_in(text)], cwd=self._place, env=self.environment, capture_output=True,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode in statuses, f"{text}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def shows(self, text: str, *seen: str) -> None:
        """Run it in a terminal until all this is seen, and leave."""
        terminal = Terminal(["sh", "-c", f"exec {self.filled_in(text)}"], self.environment, self._place)
        try:
            terminal.wait_for(*seen)
        finally:
            terminal.child.kill(signal.SIGTERM)
            terminal.wait_for_exit()

    def serves(self, text: str) -> None:
        """Start it, wait for the line that says where it listens, and end it."""
        with self._started(text) as server:
            assert server.stdout is not None
            lines: list[str] = []
            while not re.search(r"http://\S+:\d+", lines[-1] if lines else ""):
                lines.append(server.stdout.readline())
                assert lines[-1], f"{text} ended: {''.join(lines)}"

    def registers(self, text: str) -> None:
        """Start it, wait until the trajectory API knows one more environment, and end it."""
        before = self._environments()
        with self._started(text) as run:
            wait_until(lambda: self._environments() > before or run.poll() is not None, within=PATIENCE)
            assert run.poll() is None, f"{text} ended: {run.communicate()[0]}"

    def _environments(self) -> int:
        return len(httpx.get(f"{self._api}/inspect/environments", timeout=PATIENCE).json()["environments"])

    @contextmanager
    def _started(self, text: str) -> Iterator[subprocess.Popen[str]]:
        """In the background; it is asked to end in the end, and must."""
        with subprocess.Popen(
            ["sh", "-c", f"exec {self.filled_in(text)}"], cwd=self._place, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)

    def serve_run(self, name: str) -> Path:
        """A run that goes on without a screen."""
        run_dir = self.directory / "runs" / name
        self.finishes(f"atropos-tui serve envs/reverse.py --run-dir {run_dir} --detach {self.flags}")
        return run_dir

    def end(self) -> None:
        for pid in self.processes.alive():
            os.kill(pid, signal.SIGKILL)
