"""The screen on a run: a worker's control socket, a directory, or a file."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial

from atropos_tui import garbage_collection
from atropos_tui.errors import AtroposError
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.discovery import run_root
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.app import DEFAULT_RATE, AtroposApp
from atropos_tui.ui.leaving import Answer, QuitChoice
from atropos_tui.ui.run_source import RunSource
from atropos_tui.ui.user_files import read_user_files
from atropos_tui.user_config import config_directory
from atropos_tui.verbs.decoding import TokenizerOfRun
from atropos_tui.verbs.recordings import writer_is_alive
from atropos_tui.verbs.restartable import ended_run, live_run
from atropos_tui.verbs.screen_flags import ScreenOptions

# The first picture is there by then.
_START_SECONDS = 1.0


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
    """Show the run until the operator leaves, and close it; without one, begin with the fleet.

    Returns what is to become of it, None when the terminal was lost.
    `fleet` is by default that of the runs on this machine, `first` a snapshot that is known already. Raises
    UsageError for a wrong keymap or theme file, and for a theme that is not there.
    """
    options = options or ScreenOptions()
    app: AtroposApp | None = None
    fleet = fleet or Fleet(run_root(), notice=DeathNotice)
    with ExitStack() as start, garbage_collection.in_quiet_moments():
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
            await fleet.close()


def open_fleet_run(fleet: Fleet, run: FleetRun) -> RunSource:
    """A run of the fleet to watch. Raises AtroposError when it left nothing to look at."""
    if run.run_dir is None:
        return RunClient(*fleet.address(run), via="screen")
    match run.presence:
        case Presence.ENDED:
            if not (run.run_dir / RUN_FILE).exists():
                raise AtroposError(f"{run.name} left no record", f"its log is {run.run_dir / 'worker.log'}")
            return ended_run(run.run_dir)
        case Presence.ELSEWHERE:
            # Only the machine where its worker is can start another one.
            from atropos_tui.monitor.recorded.recorded_run import RecordedRun  # loading it takes a while

            path = run.run_dir / RUN_FILE
            return RecordedRun(path, TokenizerOfRun(path), writer_is_alive(path))
        case _:
            return live_run(run.run_dir)
