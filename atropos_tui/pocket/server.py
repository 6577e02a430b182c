"""The inference server of the pocket policy: `python -m atropos_tui.pocket.server`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from atropos_tui.arguments import OneLineParser
from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.errors import UsageError
from atropos_tui.http_server import HttpServer, bind_tcp, url_of
from atropos_tui.pocket.threads import use_one_blas_thread


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit status: 2 when a flag or the address is wrong."""
    ready_fd = None
    try:
        arguments = _parser().parse_args(argv)
        ready_fd = arguments.ready_fd
        _serve(arguments)
    except UsageError as error:
        announce_ready(ready_fd, error=str(error))
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _serve(arguments: argparse.Namespace) -> None:
    listener = bind_tcp(arguments.host, arguments.port)
    url = url_of(listener)

    use_one_blas_thread()  # before the imports below load numpy
    from atropos_tui.pocket.characters import Characters
    from atropos_tui.pocket.engine import Engine
    from atropos_tui.pocket.policy import Policy, PolicyShape, initial_parameters
    from atropos_tui.pocket.routes import create_app

    characters = Characters()
    shape = PolicyShape(vocabulary=characters.size)
    policy = Policy(shape, initial_parameters(shape, arguments.seed))
    app = create_app(Engine(policy, characters, arguments.seed), arguments.context)

    def on_ready() -> None:
        announce_ready(arguments.ready_fd, url=url)
        sys.stderr.write(f"pocket policy at {url}\n")

    end_with_parent(arguments.lifeline_fd)
    HttpServer(app, on_ready=on_ready).run_on(listener)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m atropos_tui.pocket.server",
        description="Serves a small policy over HTTP, as vLLM would: OpenAI's routes, /generate, weight updates.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=9001, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights and of sampling (default: 0)")
    parser.add_argument(
        "--context", type=int, default=0, metavar="N",
        help="take prompts and answers of N tokens together, though the policy makes nothing of so many",
    )  # fmt: skip
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
