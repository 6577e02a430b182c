"""Work that ends early when somebody stops the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

CANCEL_SECONDS = 10.0


class Stopped(Exception):  # noqa: N818  what happened, not an error
    """The run was stopped before the work was done."""


async def unless_stopped(stop_said: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Raises Stopped, after cancelling it, when stop is said first."""
    task = asyncio.create_task(work)
    stopped = asyncio.create_task(stop_said.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Stopped
    finally:
        await cancel({task, stopped})


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait a bounded time for their end."""
    running = [task for task in tasks if task.cancel()]
    if running:
        await asyncio.wait(running, timeout=CANCEL_SECONDS)
