"""One environment file on one side: started, waited for, and told about."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.minimal_trainer import MinimalTrainer
from benchmarks.upstream_environments.fake_server import FakeServer, serving
from benchmarks.upstream_environments.recording_api import Recording, recording_app
from benchmarks.upstream_environments.sides import Side
from benchmarks.upstream_environments.subjects import is_evaluation, own_flags

GROUP_SIZE = 4
BATCHES = 5


@dataclass
class Outcome:
    """What became of a run. `status` is its exit status, None when it was ended here; `last_line` is from its log."""

    file: str
    side: str
    mode: str
    api: str = ""
    status: int | None = None
    seconds: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    batches: int = 0
    refused: int = 0
    registrations: list[Any] = field(default_factory=list)
    last_line: str = ""

    @property
    def ran(self) -> bool:
        """Whether it gave groups, or metrics that the model was asked for."""
        return bool(self.groups) or (bool(self.metrics) and sum(self.calls.values()) > 0)

    def save(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "outcome.json").write_text(json.dumps(asdict(self)))


def load_outcome(directory: Path) -> Outcome | None:
    """What `Outcome.save` wrote there, if anything."""
    file = directory / "outcome.json"
    return Outcome(**json.loads(file.read_text())) if file.exists() else None


@dataclass(frozen=True)
class Runner:
    """Runs files against one fake server. `limit` is the longest a run may take, in seconds."""

    inference: FakeServer
    limit: float

    def run_to_the_end(self, side: Side, file: str, directory: Path) -> Outcome:
        """`process`, for two groups, or `evaluate`."""
        outcome = Outcome(file, side.name, "evaluate" if is_evaluation(file) else "process")
        flags = ["--env.max_num_workers", "1"]
        if is_evaluation(file):
            flags += ["--env.data_dir_to_save_evals", "evals"]
        else:
            flags += ["--env.total_steps", "2", "--env.data_path_to_save_groups", "groups.jsonl"]
        with (
            self._environment(side, file, outcome, flags, directory) as process,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            outcome.status = process.wait(self.limit)
        for written in sorted(directory.glob("groups*.jsonl")):
            outcome.groups += map(json.loads, written.read_text().splitlines())
        for written in sorted(directory.glob("evals/metrics*.json")):
            told = json.loads(written.read_text())
            # Some evaluations write a file of a form of their own.
            outcome.metrics = told["results"]["all"] if "results" in told else told
        outcome.save(directory)
        return outcome

    def serve(self, side: Side, api_side: Side, file: str, directory: Path) -> Outcome:
        """`serve`, until a trainer has five batches of two groups of four."""
        outcome = Outcome(file, side.name, "serve", api=api_side.name)
        recording = Recording()
        directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            api_url = stack.enter_context(_trajectory_api(api_side, directory))
            proxy_url = stack.enter_context(serving(recording_app(api_url, recording)))
            trainer = MinimalTrainer(api_url, batch_size=2 * GROUP_SIZE, max_token_len=4096)
            trainer.register()
            trainer.start()
            stack.callback(trainer.stop)
            flags = [
                "--env.rollout_server_url", proxy_url, "--env.wandb_name", "x", "--env.total_steps", "1000",
                "--env.max_num_workers", "1", "--env.steps_per_eval", "100000",
                "--env.ensure_scores_are_not_same", "false",
            ]  # fmt: skip
            with self._environment(side, file, outcome, flags, directory) as process:
                deadline = time.monotonic() + self.limit
                while len(trainer.arrivals) < BATCHES and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.1)
                outcome.status = process.poll()
            outcome.batches = len(trainer.arrivals)
        outcome.groups = recording.groups()
        outcome.registrations = recording.registrations()
        outcome.refused = recording.refusals()
        outcome.save(directory)
        return outcome

    @contextmanager
    def _environment(
        self, side: Side, file: str, outcome: Outcome, flags: Sequence[str], directory: Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The environment's process, for the length of the block; then the outcome has its time, calls, last line."""
        tokenizer, url = str(side.tokenizer), f"{self.inference.url}/v1"
        command = [
            *side.environment_command(file, outcome.mode),
            "--env.use_wandb", "false", "--env.tokenizer_name", tokenizer, "--env.group_size", str(GROUP_SIZE),
            "--openai.base_url", url, "--openai.model_name", tokenizer, "--openai.server_type", "vllm",
            "--openai.api_key", "x", "--slurm", "false", *flags, *own_flags(file, url, tokenizer),
        ]  # fmt: skip
        directory.mkdir(parents=True, exist_ok=True)
        # Some files look for their data from where a clone has its root.
        (directory / "environments").symlink_to(side.checkout / "environments")
        self.inference.take_calls()
        started = time.monotonic()
        with _process(command, side, directory / "log.txt") as process:
            yield process
        outcome.seconds = round(time.monotonic() - started, 1)
        outcome.calls = self.inference.take_calls()
        log = (directory / "log.txt").read_text(errors="replace")
        outcome.last_line = last_words(log, ended_here=outcome.status is None)


def last_words(log: str, *, ended_here: bool) -> str:
    """The last line of a log; of a run that was ended here, the last that names an error, if one does."""
    lines = [line.strip() for line in log.split("\n") if line.strip()]
    errors = [line for line in lines if "Error" in line] if ended_here else []
    return next(reversed(errors or lines), "")[:300]


@contextmanager
def _trajectory_api(side: Side, directory: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with _process(side.api_command(port), side, directory / "api.log"):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{url}/info").raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.05)
        else:
            raise SystemExit(f"the trajectory API of {side.name} does not answer: see {directory / 'api.log'}")
        yield url


@contextmanager
def _process(command: Sequence[str], side: Side, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in the log's directory, ended at the end of the block with everything that it started."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=log.parent, env=side.variables(), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
