"""What the verbs that command a run have in common.

Exit status: 0 the worker took the command, 1 it refused or doesn't answer, 2 there is no such run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from atropos_tui.arguments import verb_parser
from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.finding import RUN_HELP, alive_run


def command_run(verb: str, about: str, argv: Sequence[str], give: Callable[[RunClient], Awaitable[None]]) -> int:
    """Give a command to the run that is named, and say so."""
    parser = verb_parser(verb, about, "exit status: 0 done, 1 the worker refused or doesn't answer, 2 no such run")
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    run = alive_run(parser.parse_args(argv).run)

    async def connect_and_give() -> None:
        async with RunClient(run.worker.socket) as client:
            await give(client)

    asyncio.run(connect_and_give())
    sys.stdout.write(f"{verb}: {run.run_dir.name}\n")
    return 0
