"""The pocket trainer: GRPO on what the trajectory API hands out, like any trainer of the Atropos ecosystem.

    python -m atropos_tui.pocket.trainer --api URL --inference URL --status-file PATH [--weights-dir DIR]

Registers, polls `/batch`, updates, pushes the weights to the inference server. It waits while either isn't there, and
registers again when the trajectory API was restarted.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import asyncio
import contextlib
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson

from atropos_tui.arguments import OneLineParser
from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.errors import UsageError
from atropos_tui.pocket.adam import Adam
from atropos_tui.pocket.batches import sequences_of, training_batch
from atropos_tui.pocket.grpo import GrpoMetrics, GrpoSettings, loss_and_gradient
from atropos_tui.pocket.letters import PocketTokenizer, policy_shape
from atropos_tui.pocket.policy import Policy, initial_parameters

logger = logging.getLogger("pocket.trainer")

POLL_SECONDS = 0.05
RETRY_SECONDS = 0.5
STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class TrainerStatus:
    """What the trainer did so far; the metrics are those of the newest update."""

    step: int = 0
    groups_received: int = 0
    sequences_received: int = 0
    mean_score: float = 0.0
    loss: float = 0.0
    entropy: float = 0.0
    kl: float = 0.0
    clip_fraction: float = 0.0
    gradient_norm: float = 0.0
    weight_version: int = 0
    waiting_seconds: float = 0.0
    training_seconds: float = 0.0


class StatusFile:
    """Replaced in one step, so that no reader sees half of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, status: TrainerStatus) -> None:
        half_written = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        half_written.write_bytes(orjson.dumps(asdict(status)))
        half_written.replace(self._path)


class Learner:
    """The policy, its optimiser, and one GRPO update at a time."""

    def __init__(self, seed: int, learning_rate: float, settings: GrpoSettings) -> None:
        tokenizer = PocketTokenizer()
        shape = policy_shape(tokenizer)
        self.policy = Policy(shape, initial_parameters(shape, seed))
        self._turn_token = tokenizer.turn
        self._settings = settings
        self._adam = Adam(self.policy.parameters, learning_rate)

    def update(self, groups: Sequence[dict[str, Any]]) -> tuple[GrpoMetrics, float]:
        """One step on a batch of groups; its metrics, and the norm of the gradient."""
        deviation = self._settings.smallest_deviation
        sequences = [sequence for group in groups for sequence in sequences_of(group, deviation)]
        batch = training_batch(sequences, self._turn_token, self.policy.shape.reach)
        logits, activations = self.policy.forward(batch.tokens[:, :-1], batch.positions[:, :-1])
        metrics, gradient = loss_and_gradient(logits, batch, self._settings)
        return metrics, self._adam.step(self.policy.backward(gradient, activations))


class Trainer:
    """The loop around the learner."""

    def __init__(
        self, learner: Learner, api: httpx.AsyncClient, inference: httpx.AsyncClient, weights_dir: Path,
        status_file: StatusFile, batch_size: int,
    ) -> None:  # fmt: skip
        self.status = TrainerStatus()
        self._learner = learner
        self._api = api
        self._inference = inference
        self._weights_dir = weights_dir
        self._status_file = status_file
        self._batch_size = batch_size

    async def run(self) -> None:
        """Train until cancelled."""
        self._status_file.write(self.status)
        await self._push_weights()
        await self._until_there("trajectory API", self._register)
        while True:
            started = time.monotonic()
            groups = await self._next_batch()
            waited = time.monotonic() - started
            await self._train(groups, waited)

    async def _train(self, groups: list[dict[str, Any]], waited: float) -> None:
        started = time.monotonic()
        metrics, norm = await asyncio.to_thread(self._learner.update, groups)
        scores = [score for group in groups for score in group["scores"]]
        before = self.status
        self.status = TrainerStatus(
            step=before.step + 1,
            groups_received=before.groups_received + len(groups),
            sequences_received=before.sequences_received + len(scores),
            mean_score=float(np.mean(scores)),
            loss=metrics.loss,
            entropy=metrics.entropy,
            kl=metrics.kl,
            clip_fraction=metrics.clip_fraction,
            gradient_norm=norm,
            weight_version=before.weight_version,
            waiting_seconds=before.waiting_seconds + waited,
            training_seconds=before.training_seconds + time.monotonic() - started,
        )
        self._status_file.write(self.status)
        await self._push_weights()

    async def _register(self) -> None:
        """What the environment may send, and where checkpoints would go."""
        answer = await self._api.post(
            "/register",
            json={
                "wandb_group": "pocket", "wandb_project": "pocket", "batch_size": self._batch_size,
                "max_token_len": self._learner.policy.shape.positions, "checkpoint_dir": str(self._weights_dir),
                "save_checkpoint_interval": 0, "starting_step": self.status.step, "num_steps": STEPS,
            },
        )  # fmt: skip
        answer.raise_for_status()

    async def _next_batch(self) -> list[dict[str, Any]]:
        """Poll until there is a batch; register again when the API has forgotten us."""
        while True:
            answer = await self._until_there("trajectory API", self._ask_for_batch)
            if answer.get("status") == "error":
                logger.warning("the trajectory API says %r; registering again", answer.get("message"))
                await self._until_there("trajectory API", self._register)
            elif answer.get("batch"):
                groups: list[dict[str, Any]] = answer["batch"]
                return groups
            await asyncio.sleep(POLL_SECONDS)

    async def _ask_for_batch(self) -> dict[str, Any]:
        answer = await self._api.get("/batch")
        answer.raise_for_status()
        body: dict[str, Any] = orjson.loads(answer.content)
        return body

    async def _push_weights(self) -> None:
        """The server reads the file before it answers, so two files in turn are enough."""
        version = self.status.step
        path = self._weights_dir / f"weights-{version % 2}.npz"
        await asyncio.to_thread(np.savez, path, **self._learner.policy.parameters)  # type: ignore[arg-type]

        async def push() -> None:
            answer = await self._inference.post("/update_weights", json={"path": str(path), "weight_version": version})
            answer.raise_for_status()

        await self._until_there("inference server", push)

    async def _until_there(self, what: str, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer, however long it takes for the server to be there; says once what it waits for."""
        told = False
        while True:
            try:
                return await ask()
            except (httpx.HTTPError, orjson.JSONDecodeError) as error:
                if not told:
                    logger.warning("waiting for the %s: %s", what, error or type(error).__name__)
                told = True
                await asyncio.sleep(RETRY_SECONDS)


async def _run(options: Any, weights_dir: Path) -> None:
    learner = Learner(options.seed, options.learning_rate, GrpoSettings())
    status_file = StatusFile(options.status_file)
    async with (
        httpx.AsyncClient(base_url=options.api, timeout=30.0, trust_env=False) as api,
        httpx.AsyncClient(base_url=options.inference, timeout=30.0, trust_env=False) as inference,
    ):
        trainer = Trainer(learner, api, inference, weights_dir, status_file, options.batch_size)
        training = asyncio.create_task(trainer.run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, training.cancel)
        announce_ready(options.ready_fd)
        end_with_parent(options.lifeline_fd)
        with contextlib.suppress(asyncio.CancelledError):
            await training
        status_file.write(trainer.status)


def main(argv: Sequence[str] | None = None) -> int:
    """Train until SIGINT or SIGTERM; returns the exit status."""
    parser = OneLineParser(prog="python -m atropos_tui.pocket.trainer", description="Train the pocket policy.")
    parser.add_argument("--api", required=True, metavar="URL", help="the trajectory API")
    parser.add_argument("--inference", required=True, metavar="URL", help="the pocket server")
    parser.add_argument("--status-file", required=True, type=Path, metavar="PATH", help="JSON, replaced at every step")
    parser.add_argument("--weights-dir", type=Path, metavar="DIR", help="where weights go on their way to the server")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first weights (default 0)")
    parser.add_argument("--batch-size", type=int, default=64, help="sequences an update (default 64)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="of Adam (default 0.003)")
    parser.add_argument("--ready-fd", type=int, help="write a line of JSON here when training begins")
    parser.add_argument("--lifeline-fd", type=int, help="end when the other end of this pipe closes")
    try:
        options = parser.parse_args(argv)
        for url in (options.api, options.inference):
            if not url.startswith(("http://", "https://")):
                raise UsageError(f"{url!r} is not an address", "give a URL such as http://localhost:8000")
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    with tempfile.TemporaryDirectory(prefix="pocket-weights-") as own_directory:
        asyncio.run(_run(options, options.weights_dir or Path(own_directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
