"""The two sides of `runtime.py`: a trajectory API and an environment's process, ours or those of atroposlib 0.4.0."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from atropos_tui.monitor.supervisor import start_process

ENVIRONMENT = Path(__file__).with_name("parity.py")
GROUP_SIZE = 8


@dataclass(frozen=True)
class Running:
    """A side that runs. `socket` is that of our worker's control API, empty on upstream's side."""

    api_url: str
    api_pid: int
    environment_pid: int
    socket: str = ""

    def accepted_groups(self, groups_per_batch: int) -> int:
        """How many groups the trajectory API has taken from the environment so far."""
        status = httpx.get(f"{self.api_url}/status", timeout=60).json()
        return int(status["current_step"]) * groups_per_batch + int(status["queue_size"])


@dataclass(frozen=True)
class Load:
    """What the environment is to do."""

    inference_url: str
    tokenizer: str
    tokens: int
    workers: int

    def flags(self, api_url: str) -> list[str]:
        """Those that both sides understand."""
        return [
            "--env.rollout_server_url", api_url, "--env.tokenizer_name", self.tokenizer,
            "--env.max_token_length", str(self.tokens), "--env.max_num_workers", str(self.workers),
            "--openai.base_url", f"{self.inference_url}/v1", "--openai.model_name", self.tokenizer,
        ]  # fmt: skip


# Called between the start of the trajectory API and that of the environment, with the former's address.
Prepare = Callable[[str], None]


@contextmanager
def ours(load: Load, prepare: Prepare) -> Iterator[Running]:
    """Our trajectory API with its journal and a worker with its outbox, as `atropos-tui serve` starts them."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        module = [sys.executable, "-m"]
        api = stack.enter_context(
            start_process(
                [*module, "atropos_tui.trajectory_api"], ["--port", "0", "--run-dir", name],
                log_path=directory / "api.log",
            )
        )  # fmt: skip
        prepare(api.ready["url"])
        worker = stack.enter_context(
            start_process(
                [*module, "atropos_tui.worker", "--run-dir", name],
                ["--", str(ENVIRONMENT), *load.flags(api.ready["url"])],
                log_path=directory / "output.log",
            )
        )
        yield Running(api.ready["url"], api.pid, worker.pid, worker.ready["socket"])


@contextmanager
def upstream(python: str, load: Load, prepare: Prepare) -> Iterator[Running]:
    """`run-api` and the environment's own `serve`, both without a word of logging to a terminal."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        source = ENVIRONMENT.read_text().replace("from atropos_tui import", "from atroposlib.envs.base import")
        environment = Path(name, ENVIRONMENT.name)
        environment.write_text(source)
        api_url = f"http://127.0.0.1:{port}"

        def start(*command: str) -> int:
            process = subprocess.Popen(
                [python, *command], cwd=name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
            )  # fmt: skip
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
            return process.pid

        api_pid = start("-m", "atroposlib.cli.run_api", "--host", "127.0.0.1", "--port", str(port))
        _wait_until_up(api_url)
        prepare(api_url)
        environment_pid = start(str(environment), "serve", *load.flags(api_url), "--slurm", "false")
        yield Running(api_url, api_pid, environment_pid)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_until_up(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(url).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"upstream's trajectory API at {url} does not answer")
