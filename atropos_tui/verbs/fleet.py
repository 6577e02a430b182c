"""`atropos-tui fleet`: all runs on one screen, those found on this machine and those given by URL.

Exit status: 0 left, 2 wrong use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import UsageError
from atropos_tui.monitor.run_url import checked_url
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.screen_flags import ScreenOptions, add_screen_flags, screen_options
from atropos_tui.verbs.terminal_needed import require_terminal

_EPILOG = """\
runs on other machines:
  ssh -L 7777:127.0.0.1:7777 HOST                  (the run was started with --listen 127.0.0.1:7777)
  atropos-tui fleet http://127.0.0.1:7777 --token-file TOKEN       (TOKEN: a copy of RUN_DIR/token)
With several URLs, give one --token-file for all of them or one for each, in the same order."""


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("fleet", "Watch all runs: those found on this machine, and those given by URL.", _EPILOG)
    parser.add_argument("urls", nargs="*", metavar="URL", help="runs on other machines")
    parser.add_argument("--token-file", type=Path, action="append", default=[], metavar="F", help="their token")
    parser.add_argument("--api", default="", metavar="URL", help="and the runs that feed this trajectory API")
    parser.add_argument("--read-only", action="store_true", help="only look: the keys that change runs are off")
    add_screen_flags(parser)
    args = parser.parse_args(argv)
    if args.api:
        checked_url(args.api)
    tokens = tokens_by_url(args.urls, args.token_file)
    require_terminal("`atropos-tui ls` prints instead")
    return run_interruptible(_show(tokens, args.api, args.read_only, screen_options(args)))


def tokens_by_url(urls: Sequence[str], token_files: Sequence[Path]) -> dict[str, str]:
    """The token of each URL, empty where none was given. Raises UsageError for what is no URL or does not pair up."""
    from atropos_tui.monitor.token_file import read_token

    for url in urls:
        checked_url(url)
    if len(token_files) not in (0, 1, len(urls)) or (token_files and not urls):
        fault = f"{len(token_files)} token files for {len(urls)} URLs"
        raise UsageError(fault, "give one for all, or one for each in the same order")
    tokens = [read_token(path) for path in token_files] or [""]
    return dict(zip(urls, tokens * len(urls) if len(tokens) == 1 else tokens, strict=True))


async def further_runs(api_url: str, known: Iterable[str]) -> list[str]:
    """The runs that feed a trajectory API and are neither given nor found anyhow.

    Nobody's token is sent to them: environments tell the trajectory API what address they like.
    """
    from atropos_tui.monitor.discovery import list_runs, run_root
    from atropos_tui.monitor.registered_runs import registered_runs

    found = {run.worker.socket for run in await asyncio.to_thread(list_runs, run_root())} | set(known)
    return [address for address in await registered_runs(api_url) if address not in found]


async def _show(tokens: dict[str, str], api_url: str, read_only: bool, options: ScreenOptions) -> int:
    from atropos_tui.monitor.death_notice import DeathNotice
    from atropos_tui.monitor.discovery import run_root
    from atropos_tui.monitor.fleet import Fleet
    from atropos_tui.ui.leaving import QuitChoice
    from atropos_tui.verbs.screen import show_source

    if api_url:
        tokens |= dict.fromkeys(await further_runs(api_url, tokens), "")
    leave = QuitChoice("detach", "the runs go on without this screen")
    fleet = Fleet(run_root(), tokens, notice=DeathNotice)
    await show_source(None, title="", on_quit=(leave,), read_only=read_only, options=options, fleet=fleet)
    return 0
