"""`atropos-tui logs`: what a run's worker wrote to its log. Exit status: 0; 2 for wrong use."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import UsageError
from atropos_tui.monitor.discovery import find_run
from atropos_tui.ui.text_safety import visible
from atropos_tui.verbs.finding import RUN_HELP, which_run

LOOK_SECONDS = 0.2


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("logs", "Print the end of what a run's worker logged.")
    parser.add_argument("run", nargs="?", metavar="RUN", help=RUN_HELP)
    parser.add_argument("-f", "--follow", action="store_true", help="go on printing until the worker ends")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines (default 50)")
    args = parser.parse_args(argv)
    run = which_run(args.run)
    log = run.run_dir / "worker.log"
    shown = sys.stdout.isatty()  # a terminal would obey what models wrote
    try:
        for text in _follow(log, run.run_dir, args.lines) if args.follow else _last(log, args.lines):
            sys.stdout.write(f"{visible(text[:-1])}\n" if shown and text.endswith("\n") else text)
            sys.stdout.flush()
    except FileNotFoundError:
        raise UsageError(f"there is no log {log}", "the run may have been copied without it") from None
    return 0


def _last(log: Path, count: int) -> Iterator[str]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        yield from deque(lines, maxlen=max(0, count))


def _follow(log: Path, run_dir: Path, count: int) -> Iterator[str]:
    """The last lines, then what is added, through rotations of the file, until the worker is gone."""
    yield from _last(log, count)
    file = log.open(encoding="utf-8", errors="replace")
    try:
        file.seek(0, os.SEEK_END)
        while True:
            run = find_run(run_dir)
            ended = run is None or not run.alive
            yield from iter(file.readline, "")
            if log.exists() and log.stat().st_ino != os.fstat(file.fileno()).st_ino:
                file.close()
                file = log.open(encoding="utf-8", errors="replace")
            elif ended:
                return
            else:
                time.sleep(LOOK_SECONDS)
    finally:
        file.close()
