"""The command line of the trajectory API: `python -m atropos_tui.trajectory_api`."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from atropos_tui import garbage_collection
from atropos_tui.arguments import OneLineParser
from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.errors import UsageError
from atropos_tui.http_server import bind_tcp, url_of
from atropos_tui.trajectory_api.app import Settings, TrajectoryApi, create_app
from atropos_tui.trajectory_api.guard import is_loopback, read_token
from atropos_tui.trajectory_api.serving.server import Server

JOURNAL_NAME = "trajectory_api.journal"


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit status: 2 when a flag, file or address is wrong."""
    ready_fd = None
    try:
        arguments = _parser().parse_args(argv)
        ready_fd = arguments.ready_fd
        return _serve(arguments)
    except UsageError as error:
        announce_ready(ready_fd, error=str(error))
        sys.stderr.write(f"{error}\n")
        return 2


def _serve(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    listener = bind_tcp(arguments.host, arguments.port)
    with garbage_collection.at_rest():
        app = create_app(settings)
    url = url_of(listener)

    def on_ready() -> None:
        announce_ready(arguments.ready_fd, url=url)
        sys.stderr.write(f"trajectory API at {url}\n")

    end_with_parent(arguments.lifeline_fd)
    asyncio.run(_run(app, listener, on_ready))
    return 0


async def _run(app: TrajectoryApi, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    try:
        await Server(app).serve_on(listener, on_ready)
    finally:
        app.close()


def _settings(arguments: argparse.Namespace) -> Settings:
    token = read_token(arguments.token_file) if arguments.token_file else None
    if token is None and not is_loopback(arguments.host):
        raise UsageError(f"{arguments.host} can be reached from other machines", "give a --token-file FILE for it")
    if arguments.max_body_mb < 1:
        raise UsageError(f"--max-body-mb {arguments.max_body_mb} lets nothing in", "give at least 1")
    if not arguments.environment_timeout > 0:
        raise UsageError(f"--environment-timeout {arguments.environment_timeout} is no time", "give seconds above 0")
    journal = arguments.journal
    if journal is None and arguments.run_dir is not None and not arguments.no_journal:
        journal = arguments.run_dir / JOURNAL_NAME
    if arguments.strict_upstream and journal is not None:
        raise UsageError("--strict-upstream keeps no journal, as upstream keeps none", "leave out one of the two")
    return Settings(
        body_limit=arguments.max_body_mb * 1024 * 1024,
        environment_timeout=arguments.environment_timeout,
        lenient=arguments.lenient,
        token=token,
        journal=journal,
        strict_upstream=arguments.strict_upstream,
    )


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="atropos-tui api",
        description="The trajectory API: takes scored groups from environments, gives batches to trainers.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--max-body-mb", type=int, default=512, help="largest request body, inflated (default: %(default)s)"
    )
    parser.add_argument(
        "--environment-timeout", type=float, default=60.0, metavar="SECONDS",
        help="an environment that is silent for so long no longer holds back batches (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--lenient", action="store_true", help="accept the registrations of other trainers' dialects")
    parser.add_argument("--strict-upstream", action="store_true", help="behave as upstream's server does, faults too")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="ask for the token in this file")
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=f"keep a journal there, in {JOURNAL_NAME}")
    journal = parser.add_mutually_exclusive_group()
    journal.add_argument("--journal", type=Path, metavar="PATH", help="keep what was accepted in this file")
    journal.add_argument("--no-journal", action="store_true", help="keep it in memory only, whatever --run-dir says")
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, help=argparse.SUPPRESS)
    return parser
