"""The screen on a run: a worker's control socket, a directory, or a file."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from atropos_tui import garbage_collection
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.discovery import run_root
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.app import DEFAULT_RATE, AtroposApp
from atropos_tui.ui.quit import Answer, QuitChoice
from atropos_tui.ui.run_source import RunSource
from atropos_tui.ui.user_files import read_user_files
from atropos_tui.user_config import config_directory
from atropos_tui.verbs.decoding import TokenizerOfRun
from atropos_tui.verbs.recordings import writer_is_alive
from atropos_tui.verbs.screen_flags import ScreenOptions

# The first picture is there by then.
_START_SECONDS = 1.0


async def show_run(
    socket: str | Path,
    *,
    title: str,
    on_quit: tuple[QuitChoice, ...],
    read_only: bool = False,
    options: ScreenOptions | None = None,
) -> Answer | None:
    """Show the run until the operator leaves; returns what is to become of it, None when the terminal was lost."""
    source = RunClient(socket, via="screen")
    return await show_source(source, title=title, on_quit=on_quit, read_only=read_only, options=options)


async def show_source(
    source: RunSource | None,
    *,
    title: str,
    on_quit: tuple[QuitChoice, ...],
    read_only: bool = False,
    options: ScreenOptions | None = None,
    fleet: Fleet | None = None,
    first: RunSnapshot | None = None,
) -> Answer | None:
    """The same for any source, which is closed in the end; without one, beginning with the fleet.

    `fleet` is by default that of the runs on this machine, `first` a snapshot that is known already. Raises
    UsageError for a wrong keymap or theme file, and for a theme that is not there.
    """
    options = options or ScreenOptions()
    app: AtroposApp | None = None
    fleet = fleet or Fleet(run_root())
    with ExitStack() as start:
        start.enter_context(garbage_collection.at_rest())
        asyncio.get_running_loop().call_later(_START_SECONDS, start.close)
        try:
            app = AtroposApp(
                source,
                title=title,
                fleet=fleet,
                open_run=partial(open_fleet_run, fleet),
                on_quit=on_quit,
                read_only=read_only,
                first=first,
                user_files=read_user_files(config_directory()),
                theme=options.theme,
                mouse=options.mouse,
                ascii_only=options.ascii_only,
                rate=options.rate or DEFAULT_RATE,
            )
            return await app.run_async()
        finally:
            if app is not None:
                await app.close_opened()
            if source is not None:
                await source.close()


def open_fleet_run(fleet: Fleet, run: FleetRun) -> RunSource:
    """A run of the fleet to watch. Raises AtroposError when it left nothing to look at."""
    if run.run_dir is None:
        return RunClient(*fleet.address(run), via="screen")
    path = run.run_dir / RUN_FILE
    if run.presence in (Presence.ENDED, Presence.ELSEWHERE):
        from atropos_tui.monitor.recorded.recorded_run import RecordedRun  # loading it takes a while

        return RecordedRun(path, TokenizerOfRun(path), writer_is_alive(path))
    return LiveRun(run.run_dir, TokenizerOfRun(path))
