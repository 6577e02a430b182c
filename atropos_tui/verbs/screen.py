"""The screen on a run's control socket."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.monitor.client import RunClient
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.quit import Answer, QuitChoice


async def show_run(
    socket: str | Path, *, title: str, on_quit: tuple[QuitChoice, ...], read_only: bool = False
) -> Answer | None:
    """Show the run until the operator leaves; returns what is to become of it, None when the terminal was lost."""
    client = RunClient(socket)
    try:
        return await AtroposApp(client, title=title, on_quit=on_quit, read_only=read_only).run_async()
    finally:
        await client.close()
