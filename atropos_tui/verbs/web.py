"""`atropos-tui web`: the screen in a browser on this machine. Exit status: 130 ended by Ctrl-C, 2 wrong use."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import UsageError
from atropos_tui.http_server import bind_tcp
from atropos_tui.verbs.finding import RUN_HELP, alive_run
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.recordings import recording

_EPILOG = """\
Each browser tab has a screen of its own. Only this machine can open it; from another one:
  ssh -L 8765:127.0.0.1:8765 HOST       and then open http://localhost:8765"""


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("web", "Show a run in a browser, read-only unless asked.", _EPILOG)
    parser.add_argument("run", nargs="?", metavar="RUN", help=f"{RUN_HELP}; or what was recorded, as for `open`")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="0 takes a free one (default 8765)")
    parser.add_argument("--commands", action="store_true", help="let who opens the page pause, step and stop the run")
    args = parser.parse_args(argv)
    if find_spec("textual_serve") is None:
        raise UsageError("the browser's side is not installed", "pip install 'atropos-tui[web]'")
    screen = _screen(args.run, args.commands)
    return run_interruptible(_serve(screen, bind_tcp("127.0.0.1", args.port)))


async def _serve(screen: Sequence[str], listener: socket.socket) -> int:
    from atropos_tui.web.server import ScreenServer

    await ScreenServer(screen, title=Path(screen[1]).name).run(listener, on_ready=_tell)
    return 0


def _tell(url: str) -> None:
    sys.stdout.write(f"{url.replace('127.0.0.1', 'localhost')}\n")
    sys.stdout.flush()


def _screen(named: str | None, commands: bool) -> list[str]:
    """The verb and its arguments that each tab runs. A run that has ended is opened from its record."""
    try:
        run_dir = str(alive_run(named).run_dir)
    except UsageError:
        return ["open", str(recording(named))]
    return ["attach", run_dir] if commands else ["attach", run_dir, "--read-only"]
