"""Ending in order when a signal comes: the main task is cancelled, and its `finally` blocks clean up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptible(main: Coroutine[Any, Any, int]) -> int:
    """Run `main` in an event loop of its own; returns its exit status, or 128 + the signal that ended it."""
    return asyncio.run(_interruptible(main))


async def _interruptible(main: Coroutine[Any, Any, int]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main)
    came: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if not came:
            task.cancel()
        came.append(number)

    # Under nohup hang-ups are ignored, and stay so; a screen sees by itself that its terminal is gone.
    heeded = [number for number in SIGNALS if (number, signal.getsignal(number)) != (signal.SIGHUP, signal.SIG_IGN)]
    for number in heeded:
        loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not came:
            raise
        return 128 + came[0]
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
