"""`atropos-tui requeue`. Exit status: see `commanding`."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.commanding import command_group

ABOUT = "Put a group that is still being made back into the backlog, from where its item is taken first."


def main(argv: Sequence[str]) -> int:
    return command_group("requeue", ABOUT, argv, RunClient.requeue_group)
