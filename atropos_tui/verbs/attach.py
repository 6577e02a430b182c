"""`atropos-tui attach`: the screen on a run that is there already, here or on another machine.

Exit status: 0 left, 1 it doesn't answer, 2 there is no such run. Over SSH either of these brings a run near:

    ssh -L 7777:127.0.0.1:7777 HOST                 and then  attach http://127.0.0.1:7777 --token-file F
    ssh -L /tmp/run.sock:/RUN_DIR/control.sock HOST and then  attach /tmp/run.sock
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import UsageError
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.run_url import SCHEMES, checked_url
from atropos_tui.monitor.unix_socket import UNIX_SCHEME
from atropos_tui.verbs.finding import RUN_HELP, alive_run
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.opening import first_while_loading
from atropos_tui.verbs.printing import WITHOUT_SCREEN, Printed, add_printing_flags, print_run
from atropos_tui.verbs.restartable import live_run
from atropos_tui.verbs.screen_flags import ScreenOptions, add_screen_flags, screen_options
from atropos_tui.verbs.terminal_needed import require_terminal

_EPILOG = """\
a run on another machine:
  ssh -L 7777:127.0.0.1:7777 HOST                  (the run was started with --listen 127.0.0.1:7777)
  atropos-tui attach http://127.0.0.1:7777 --token-file TOKEN     (TOKEN: a copy of RUN_DIR/token)
or, without --listen and without a token:
  ssh -L /tmp/run.sock:RUN_DIR/control.sock HOST
  atropos-tui attach /tmp/run.sock

exit status: 0 left, 1 it doesn't answer, 2 no such run"""


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("attach", "Watch a run that is there already.", _EPILOG)
    parser.add_argument("run", nargs="?", metavar="RUN", help=f"{RUN_HELP}, the URL of a remote one, or a socket")
    parser.add_argument("--read-only", action="store_true", help="only look: the keys that change the run are off")
    parser.add_argument("--token-file", type=Path, metavar="F", help="the token of a remote run")
    add_printing_flags(parser)
    add_screen_flags(parser)
    args = parser.parse_args(argv)
    if args.printed:
        return run_interruptible(_print(args.run, args.token_file, args.printed))
    return run_interruptible(_attach(args.run, args.token_file, args.read_only, screen_options(args)))


async def _print(named: str | None, token_file: Path | None, how: Printed) -> int:
    source, _ = await _source(named, token_file)
    return await print_run(source, how)


async def _attach(named: str | None, token_file: Path | None, read_only: bool, options: ScreenOptions) -> int:
    source, title = await _source(named, token_file)
    try:
        require_terminal(WITHOUT_SCREEN)
        first = await first_while_loading(source)
        from atropos_tui.ui.leaving import DETACH, STOP
        from atropos_tui.verbs.screen import show_source

        choices = (DETACH,) if read_only else (DETACH, STOP)
        answer = await show_source(
            source, title=title, on_quit=choices, read_only=read_only, options=options, first=first
        )
    except BaseException:
        await source.close()
        raise
    if answer == "stop":
        again, _ = await _source(named, token_file)
        try:
            await again.stop()
        finally:
            await again.close()
    return 0


async def _source(named: str | None, token_file: Path | None) -> tuple[RunClient | LiveRun, str]:
    """The run, and what to call it. Raises UsageError, UnreachableError or RefusedError when it cannot be watched."""
    address = (named or "").removeprefix(UNIX_SCHEME)
    if address.startswith(SCHEMES) or _is_socket(address):
        if address.startswith(SCHEMES):
            checked_url(address)
        client = RunClient(address, _token(token_file) if token_file else "", via="screen")
        try:
            run_id = str((await client.health())["run_id"])
        except BaseException:
            await client.close()
            raise
        return client, run_id
    if named is not None and address != named:
        raise UsageError(f"there is no socket {address} here", "ask on its machine, or forward it with ssh -L")
    if token_file is not None:
        raise UsageError("--token-file is for a run on another machine", "give its URL, http://HOST:PORT")
    run = alive_run(named)
    return live_run(run.run_dir), run.worker.environment


def _token(file: Path) -> str:
    from atropos_tui.monitor.token_file import read_token  # brings cryptography, which runs on this machine need not

    return read_token(file)


def _is_socket(named: str) -> bool:
    path = Path(named)
    return path.exists() and stat.S_ISSOCK(path.stat().st_mode)
