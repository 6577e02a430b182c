"""The screen is loaded while the run is asked for what it shows first."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from importlib import import_module

from atropos_tui import garbage_collection
from atropos_tui.errors import AtroposError
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.verbs.printing import Streaming


async def first_while_loading(source: Streaming) -> RunSnapshot | None:
    """The run's newest snapshot; None when it has not answered by the time that the screen is loaded, or refused.

    Then it is for the screen to follow the run, and to say what is wrong.
    """
    asked = asyncio.create_task(_first(source))
    try:
        with garbage_collection.at_rest():
            await asyncio.to_thread(import_module, "atropos_tui.verbs.screen")
        return asked.result() if asked.done() else None
    finally:
        asked.cancel()
        await asyncio.wait((asked,))


async def _first(source: Streaming) -> RunSnapshot | None:
    with suppress(AtroposError, OSError):
        async with aclosing(source.stream()) as snapshots:  # type: ignore[type-var]  # streams are generators
            return await anext(snapshots, None)
    return None
