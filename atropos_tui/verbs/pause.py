"""`atropos-tui pause`. Exit status: see `commanding`."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.commanding import command_run

ABOUT = "Let no further group of a run start; those in flight finish, or with --now go back into the backlog."


def main(argv: Sequence[str]) -> int:
    give = RunClient.pause_now if "--now" in argv else RunClient.pause
    return command_run("pause", ABOUT, [argument for argument in argv if argument != "--now"], give)
