"""The trainer of the pocket policy: `python -m atropos_tui.pocket.trainer`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from atropos_tui.arguments import OneLineParser
from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.errors import UsageError
from atropos_tui.pocket.threads import use_one_blas_thread

if TYPE_CHECKING:
    from atropos_tui.pocket.training import Trainer

# How long a step or request that is under way when the trainer is told to stop may still take.
GRACE_SECONDS = 2.0


def main(argv: Sequence[str] | None = None) -> int:
    """Train until SIGINT or SIGTERM. Returns the exit status: 2 when a flag is wrong or a server refuses a request."""
    logging.basicConfig(format="%(asctime)s %(message)s")
    ready_fd = None
    try:
        arguments = _parser().parse_args(argv)
        ready_fd = arguments.ready_fd
        _check(arguments)
    except UsageError as error:
        announce_ready(ready_fd, error=str(error))
        return _refuse(error)
    try:
        asyncio.run(_train(arguments))
    except UsageError as error:
        return _refuse(error)
    return 0


def _refuse(error: UsageError) -> int:
    sys.stderr.write(f"{error}\n")
    return 2


async def _train(arguments: argparse.Namespace) -> None:
    use_one_blas_thread()  # before the imports below load numpy
    from atropos_tui.pocket.checkpoint import Checkpoint
    from atropos_tui.pocket.learner import Learner
    from atropos_tui.pocket.remote import InferenceServer, TrajectoryApi
    from atropos_tui.pocket.status_file import StatusFile
    from atropos_tui.pocket.training import Trainer

    learner = Learner(arguments.seed, arguments.learning_rate)
    directory = arguments.checkpoint_dir
    checkpoint = None if directory is None else Checkpoint(directory, arguments.checkpoint_every)
    async with (
        TrajectoryApi(arguments.api) as api,
        InferenceServer(arguments.inference, arguments.weights_dir) as inference,
    ):
        try:
            trainer = Trainer(
                learner, api, inference, StatusFile(arguments.status_file),
                batch_size=arguments.batch_size, num_steps=arguments.num_steps, checkpoint=checkpoint,
            )  # fmt: skip
        except UsageError as error:
            announce_ready(arguments.ready_fd, error=str(error))
            raise
        training = asyncio.create_task(trainer.run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, _stop, trainer, training)
        end_with_parent(arguments.lifeline_fd)
        announce_ready(arguments.ready_fd)
        with contextlib.suppress(asyncio.CancelledError):
            await training


def _stop(trainer: Trainer, training: asyncio.Task[None]) -> None:
    """Ask first, so that a batch on its way is counted; then cancel."""
    trainer.stop()
    asyncio.get_running_loop().call_later(GRACE_SECONDS, training.cancel)


def _check(arguments: argparse.Namespace) -> None:
    for flag, url in (("--api", arguments.api), ("--inference", arguments.inference)):
        if not _is_http_url(url):
            raise UsageError(f"{flag} {url} is not a URL", "write it as http://HOST:PORT")
    counts = (
        ("--batch-size", arguments.batch_size), ("--num-steps", arguments.num_steps),
        ("--checkpoint-every", arguments.checkpoint_every),
    )  # fmt: skip
    for flag, number in counts:
        if number < 1:
            raise UsageError(f"{flag} {number} is too small", "give at least 1")
    directories = (
        ("--status-file", arguments.status_file.parent), ("--weights-dir", arguments.weights_dir),
        ("--checkpoint-dir", arguments.checkpoint_dir),
    )  # fmt: skip
    for flag, directory in directories:
        if directory is not None and not directory.is_dir():
            raise UsageError(f"{flag}: there is no directory {directory}", "make it first")


def _is_http_url(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m atropos_tui.pocket.trainer",
        description="Trains the pocket policy with GRPO on the batches of a trajectory API.",
    )
    parser.add_argument("--api", required=True, metavar="URL", help="the trajectory API")
    parser.add_argument("--inference", required=True, metavar="URL", help="the inference server")
    parser.add_argument(
        "--status-file", required=True, type=Path, metavar="PATH", help="JSON, replaced after each step"
    )
    parser.add_argument("--weights-dir", type=Path, metavar="DIR", help="hand weights over as a file in this directory")
    parser.add_argument(
        "--checkpoint-dir", type=Path, metavar="DIR", help="keep weights and step there, and go on from them"
    )
    parser.add_argument("--checkpoint-every", type=int, default=100, metavar="N", help="steps (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="sequences of a batch (default: %(default)s)")
    parser.add_argument("--num-steps", type=int, default=1_000_000, help="steps to train (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="of Adam (default: %(default)s)")
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
