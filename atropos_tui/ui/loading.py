"""What the first picture need not wait for: the screens behind the keys, loaded before one of the keys is pressed."""

from __future__ import annotations

import asyncio
from importlib import import_module

SCREENS = ("trajectories", "logs", "evals", "alerts", "help", "confirm", "quit", "config", "fleet")


async def load_screens() -> None:
    """One after another on a thread, so that keys and snapshots are taken meanwhile."""
    for name in SCREENS:
        await asyncio.to_thread(import_module, f"atropos_tui.ui.{name}")
