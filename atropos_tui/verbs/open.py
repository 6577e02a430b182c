"""`atropos-tui open`: the screen on what was recorded. Exit status: 0 left, 1 the file is damaged, 2 there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.arguments import verb_parser
from atropos_tui.verbs.decoding import LazyTokenizer, TokenizerOfRun
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.opening import first_while_loading
from atropos_tui.verbs.printing import WITHOUT_SCREEN, add_printing_flags, print_run
from atropos_tui.verbs.recordings import (
    RECORDING_HELP,
    check_jsonl,
    is_recorded_run,
    recording,
    writer_is_alive,
)
from atropos_tui.verbs.screen_flags import ScreenOptions, add_screen_flags, screen_options
from atropos_tui.verbs.terminal_needed import require_terminal

if TYPE_CHECKING:
    from atropos_tui.monitor.recorded.jsonl_run import JsonlRun
    from atropos_tui.monitor.recorded.recorded_run import RecordedRun


def main(argv: Sequence[str]) -> int:
    parser = verb_parser(
        "open", "Watch what was recorded: a run file (its run may go on), or a JSONL of scored groups."
    )
    parser.add_argument("path", nargs="?", metavar="PATH", help=f"{RECORDING_HELP} (default: the newest run)")
    parser.add_argument("--tokenizer", default="", metavar="NAME", help="shows tokens as text (default: the run's own)")
    add_printing_flags(parser)
    add_screen_flags(parser)
    args = parser.parse_args(argv)
    path = recording(args.path)
    if args.printed:
        return run_interruptible(print_run(source_of(path, args.tokenizer), args.printed))
    return run_interruptible(_show(path, args.tokenizer, screen_options(args)))


async def _show(path: Path, tokenizer: str, options: ScreenOptions) -> int:
    source = source_of(path, tokenizer)
    try:
        require_terminal(WITHOUT_SCREEN)
        first = await first_while_loading(source)
        from atropos_tui.ui.leaving import QuitChoice
        from atropos_tui.verbs.screen import show_source

        leave = QuitChoice("detach", "closes the file")
        await show_source(source, title=path.name, on_quit=(leave,), read_only=True, options=options, first=first)
    except BaseException:
        await source.close()
        raise
    return 0


def source_of(path: Path, tokenizer: str = "") -> RecordedRun | JsonlRun:
    """The file as a run to watch. Raises RunFileError or UsageError."""
    if is_recorded_run(path):
        from atropos_tui.monitor.recorded.recorded_run import RecordedRun

        return RecordedRun(path, TokenizerOfRun(path, tokenizer), writer_is_alive(path))
    check_jsonl(path)
    from atropos_tui.monitor.recorded.jsonl_run import JsonlRun

    return JsonlRun(path, LazyTokenizer(lambda: tokenizer))
