"""Following a run whatever happens to the connection: snapshots, and in between why there are none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import NamedTuple

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import ENDED_STATES
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.run_source import RunSource

FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0


class Lost(NamedTuple):
    """The stream broke; the next attempt follows after `retry_in` seconds."""

    because: str
    retry_in: float


async def follow(
    source: RunSource, hz: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[RunSnapshot | Lost]:
    """Snapshots for ever, reconnecting with growing waits; ends only after a snapshot of a run that ended."""
    wait = FIRST_WAIT
    ended = False
    while True:
        because = "the worker closed the connection"
        try:
            async with aclosing(source.stream(hz)) as snapshots:  # type: ignore[type-var]  # streams are generators
                async for snapshot in snapshots:
                    wait = FIRST_WAIT
                    ended = snapshot.run.state in ENDED_STATES
                    yield snapshot
        except (AtroposError, OSError) as error:
            because = str(error) or type(error).__name__
        if ended:
            return
        yield Lost(because, wait)
        await sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)
