"""`atropos-tui cancel`. Exit status: see `commanding`."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.client import RunClient
from atropos_tui.verbs.commanding import command_group

ABOUT = "Give up a group that is still being made: it fails as `cancelled`, and its item is not tried again."


def main(argv: Sequence[str]) -> int:
    return command_group("cancel", ABOUT, argv, RunClient.cancel_group)
