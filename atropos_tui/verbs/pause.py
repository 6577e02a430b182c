"""`atropos-tui pause`. Exit status: see `commanding`."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.commanding import command_run


def main(argv: Sequence[str]) -> int:
    return command_run("pause", "Let no further group of a run start; those in flight end.", argv, RunClient.pause)
