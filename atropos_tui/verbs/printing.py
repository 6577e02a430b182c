"""A run printed instead of shown: `--once`, `--json` and `--plain` of the verbs that otherwise open the screen."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from enum import StrEnum
from typing import Protocol

from atropos_tui.ledger.outcomes import ENDED_STATES
from atropos_tui.monitor.snapshot import SECTIONS, RunSnapshot
from atropos_tui.verbs.plain import summary_line

WITHOUT_SCREEN = "--once, --json and --plain print instead"
_SECONDS_BETWEEN_LINES = 2.0
_NARROWEST = 60


class Printed(StrEnum):
    """How a run is printed."""

    ONCE = "once"
    JSON = "json"
    PLAIN = "plain"


class Streaming(Protocol):
    """What can be printed: anything that streams snapshots, the newest first."""

    def stream(self) -> AsyncIterator[RunSnapshot]: ...

    async def close(self) -> None: ...


def add_printing_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags; what they choose is in `printed`, None where the screen is wanted."""
    how = parser.add_mutually_exclusive_group()
    for printed, about in {
        Printed.ONCE: "no screen: print what the dashboard shows now, as text",
        Printed.JSON: "no screen: print what the dashboard shows now, as one JSON object",
        Printed.PLAIN: "no screen: a line every two seconds, until the run ends",
    }.items():
        how.add_argument(f"--{printed}", dest="printed", action="store_const", const=printed, help=about)


async def print_run(source: Streaming, how: Printed) -> int:
    """Print the run and close it; returns the exit status."""
    try:
        async with aclosing(source.stream()) as snapshots:  # type: ignore[type-var]  # streams are generators
            match how:
                case Printed.ONCE:
                    _write(_report(await anext(snapshots)))
                case Printed.JSON:
                    _write(as_json(await anext(snapshots)))
                case Printed.PLAIN:
                    await _print_lines(snapshots)
    finally:
        await source.close()
    return 0


def as_json(snapshot: RunSnapshot, **also: object) -> str:
    """Every section of the snapshot by name; numbers that JSON has no form for are null."""
    import pydantic_core  # the screen must not wait for it to load

    told = {**also, "seq": snapshot.seq, "taken_at": snapshot.taken_at}
    told |= {name: asdict(getattr(snapshot, name)) for name in SECTIONS}
    return pydantic_core.to_json(told, indent=1, inf_nan_mode="null").decode() + "\n"


async def _print_lines(snapshots: AsyncIterator[RunSnapshot]) -> None:
    next_at = 0.0
    async for snapshot in snapshots:
        ended = snapshot.run.state in ENDED_STATES
        if ended or time.monotonic() >= next_at:
            next_at = time.monotonic() + _SECONDS_BETWEEN_LINES
            _write(summary_line(snapshot) + "\n")
        if ended:
            return


def _report(snapshot: RunSnapshot) -> str:
    from atropos_tui.ui.moment import Contact, Moment
    from atropos_tui.ui.report import DEFAULT_WIDTH, report

    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    return report(Moment(snapshot, snapshot.taken_at, Contact.CONNECTED), max(_NARROWEST, width))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
