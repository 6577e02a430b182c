"""What the verbs that command a run have in common.

Exit status: 0 the worker took the command, 1 it refused or doesn't answer, 2 there is no such run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from atropos_tui.arguments import OneLineParser, verb_parser
from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.finding import RUN_HELP, alive_run

LATER = "the environment's code holds its event loop; the run takes the command as soon as it lets go"


def command_run(verb: str, about: str, argv: Sequence[str], give: Callable[[RunClient], Awaitable[bool | None]]) -> int:
    """Give a command to the run that is named, and say so."""
    parser = _parser(verb, about)
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    return _give(verb, parser.parse_args(argv).run, "", give)


def command_group(verb: str, about: str, argv: Sequence[str], give: Callable[[RunClient, int], Awaitable[bool]]) -> int:
    """Give a command about one group of a run. Both are asked for: no group is called off by accident."""
    parser = _parser(verb, about)
    parser.add_argument("run", metavar="RUN", help="a run's directory or name, or the beginning of its name")
    parser.add_argument("group", metavar="GROUP", type=int, help="the number of a group in flight")
    args = parser.parse_args(argv)
    return _give(verb, args.run, f" group {args.group}", lambda client: give(client, args.group))


def _parser(verb: str, about: str) -> OneLineParser:
    return verb_parser(verb, about, "exit status: 0 done, 1 the worker refused or doesn't answer, 2 no such run")


def _give(verb: str, named: str | None, what: str, give: Callable[[RunClient], Awaitable[bool | None]]) -> int:
    run = alive_run(named)

    async def connect_and_give() -> bool | None:
        async with RunClient(run.worker.socket, via="command line") as client:
            return await give(client)

    taken = asyncio.run(connect_and_give())
    sys.stdout.write(f"{verb}: {run.run_dir.name}{what}{'' if taken is not False else f' ({LATER})'}\n")
    return 0
