"""The screen on a run: a worker's control socket, a directory, or a file."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.monitor.client import RunClient
from atropos_tui.ui.app import DEFAULT_RATE, AtroposApp
from atropos_tui.ui.quit import Answer, QuitChoice
from atropos_tui.ui.run_source import RunSource
from atropos_tui.ui.user_files import config_directory, read_user_files
from atropos_tui.verbs.screen_flags import ScreenOptions


async def show_run(
    socket: str | Path,
    *,
    title: str,
    on_quit: tuple[QuitChoice, ...],
    read_only: bool = False,
    options: ScreenOptions | None = None,
) -> Answer | None:
    """Show the run until the operator leaves; returns what is to become of it, None when the terminal was lost."""
    return await show_source(RunClient(socket), title=title, on_quit=on_quit, read_only=read_only, options=options)


async def show_source(
    source: RunSource,
    *,
    title: str,
    on_quit: tuple[QuitChoice, ...],
    read_only: bool = False,
    options: ScreenOptions | None = None,
) -> Answer | None:
    """The same for any source, which is closed in the end.

    Raises UsageError for a wrong keymap or theme file, and for a theme that is not there.
    """
    options = options or ScreenOptions()
    try:
        app = AtroposApp(
            source,
            title=title,
            on_quit=on_quit,
            read_only=read_only,
            user_files=read_user_files(config_directory()),
            theme=options.theme,
            mouse=options.mouse,
            rate=options.rate or DEFAULT_RATE,
        )
        return await app.run_async()
    finally:
        await source.close()
