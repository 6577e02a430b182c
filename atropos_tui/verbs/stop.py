"""`atropos-tui stop`: end a run in order, and wait until its worker is gone.

Exit status: 0 it is gone, 1 it still runs when `--wait` is over, or refused; 2 there is no such run. Its name is asked
for: the newest run is not stopped by accident.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import AtroposError
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.unix_socket import answers
from atropos_tui.verbs.finding import alive_run

WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.1


def main(argv: Sequence[str]) -> int:
    parser = verb_parser(
        "stop",
        "End a run in order: what is in flight ends first, the outbox is sent, and the worker goes.",
        "exit status: 0 it is gone, 1 it still runs or refused, 2 no such run",
    )
    parser.add_argument("run", metavar="RUN", help="a run's directory or name, or the beginning of its name")
    parser.add_argument("--wait", type=float, default=WAIT_SECONDS, metavar="SECONDS", help="0: do not wait")
    args = parser.parse_args(argv)
    run = alive_run(args.run)
    asyncio.run(_stop(run.worker.socket))
    if args.wait > 0 and not _gone(run.worker.socket, args.wait):
        raise AtroposError(f"{run.run_dir.name} still runs after {args.wait:g} s", "stop it again to hurry it")
    sys.stdout.write(f"stop: {run.run_dir.name}\n")
    return 0


async def _stop(socket: str) -> None:
    async with RunClient(socket) as client:
        await client.stop()


def _gone(socket: str, within: float) -> bool:
    """Whether the worker has closed its socket, which is the last thing it does, before time is over."""
    deadline = time.monotonic() + within
    while answers(socket):
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True
