"""`atropos-tui process FILE` and `evaluate FILE`: an environment's modes that end by themselves, in this process."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.compat.module_path import enable
from atropos_tui.errors import UsageError
from atropos_tui.runtime.entry_point import run_command_line
from atropos_tui.runtime.loading import load_environment


def run_batch_mode(mode: str, argv: Sequence[str]) -> int:
    """Run the environment of `argv[0]`, `FILE[:CLASS]`, in a mode with the flags that follow.

    Raises UsageError, and SystemExit with the exit status once the mode has run.
    """
    if not argv or argv[0].startswith("-"):
        raise UsageError("the environment file comes first", f"atropos-tui {mode} FILE[:CLASS] [--env.FIELD VALUE …]")
    enable()
    run_command_line(load_environment(argv[0]), [mode, *argv[1:]])
    return 0
