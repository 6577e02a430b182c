"""`atropos-tui evaluate-now`. Exit status: see `commanding`."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.commanding import command_run


def main(argv: Sequence[str]) -> int:
    return command_run("evaluate-now", "Start an evaluation of a run.", argv, RunClient.evaluate_now)
