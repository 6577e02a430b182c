"""`atropos-tui serve`: an environment in a worker of its own, and the screen on it.

A run directory that is used again goes on where it was: with its outbox, its run file and its numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.client import RunClient, UnreachableError
from atropos_tui.monitor.discovery import new_run_dir, note_run_dir
from atropos_tui.monitor.live_run import how_it_ended
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.monitor.supervisor import ChildProcess
from atropos_tui.verbs.deaths import tell_of_death
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.plain import summary_line
from atropos_tui.verbs.screen_flags import ScreenOptions
from atropos_tui.verbs.starting import READY_SECONDS, Start, WorkerStarter
from atropos_tui.verbs.terminal_needed import require_terminal

if TYPE_CHECKING:
    from atropos_tui.ui.leaving import Answer

STOP_SECONDS = 60.0
TELL_SECONDS = 5.0


def serve_environment(
    environment: str,
    flags: Sequence[str],
    *,
    run_dir: Path | None,
    headless: bool,
    detach: bool = False,
    worker_options: Sequence[str] = (),
    screen: ScreenOptions | None = None,
) -> int:
    """Run an environment file in a worker and show it; returns the exit status. `detach`: start it and leave it alone.

    Raises UsageError for anything wrong with the file or the flags, before the screen opens.
    """
    if not (headless or detach):
        require_terminal("--headless and --detach do without a screen")
    path = Path(environment.rsplit(":", 1)[0] if ":" in environment else environment)
    directory = run_dir or new_run_dir(path.stem)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # then `ls` wants its path
        note_run_dir(directory)
    start = Start.here(environment, flags, worker_options)
    starter = WorkerStarter(directory, start, detached=not headless)
    worker = starter.launch()
    if detach:
        return run_interruptible(_start(worker, directory))
    if headless:
        return run_interruptible(_serve_headless(worker, directory))
    return run_interruptible(_serve(worker, starter, directory, environment, screen))


def print_environment_help(environment: str) -> int:
    """Print the config fields of an environment, with their defaults."""
    from atropos_tui.compat.module_path import enable
    from atropos_tui.runtime.command_line import help_text
    from atropos_tui.runtime.loading import load_environment

    enable()
    sys.stdout.write(help_text(load_environment(environment)) + "\n")
    return 0


async def _start(worker: ChildProcess, directory: Path) -> int:
    try:
        await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
    except BaseException:
        await asyncio.shield(asyncio.to_thread(worker.terminate, STOP_SECONDS))
        raise
    sys.stdout.write(f"{directory}\n")
    return 0


async def _serve_headless(worker: ChildProcess, directory: Path) -> int:
    try:
        ready = await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
        return await _tell(worker, directory, str(ready["socket"]))
    finally:
        await asyncio.shield(asyncio.to_thread(worker.terminate, STOP_SECONDS))


async def _serve(
    worker: ChildProcess, starter: WorkerStarter, directory: Path, environment: str, screen: ScreenOptions | None
) -> int:
    """With the screen, where the worker may be started again: the newest one is what becomes of the run."""
    left_running = False
    try:
        await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
        answer = await _show(starter, directory, environment, screen)
        left_running = answer != "stop"
    finally:
        worker = starter.worker or worker
        if not left_running:
            await asyncio.shield(asyncio.to_thread(worker.terminate, STOP_SECONDS))
    if (status := worker.poll()) is not None and left_running:
        raise AtroposError(f"the worker {how_it_ended(status)}", f"look at what it left: atropos-tui open {directory}")
    if answer == "detach":  # a lost terminal may take no more, and would be waited for
        sys.stdout.write(f"the run goes on; watch it again with: atropos-tui attach {directory}\n")
    return 0


async def _show(
    starter: WorkerStarter, directory: Path, environment: str, options: ScreenOptions | None
) -> Answer | None:
    from atropos_tui.ui.leaving import DETACH, STOP
    from atropos_tui.verbs.restartable import live_run_of
    from atropos_tui.verbs.screen import show_source

    run = live_run_of(starter, directory)
    return await show_source(run, title=environment, on_quit=(DETACH, STOP), options=options)


async def _tell(worker: ChildProcess, directory: Path, socket: str) -> int:
    """Plain lines until the run ends; its end decides the exit status."""
    tells_at = 0.0
    snapshot = RunSnapshot()
    async with RunClient(socket) as client:
        while worker.poll() is None:
            try:
                snapshot = await client.snapshot()
            except UnreachableError:
                if why := await tell_of_death(directory, worker, snapshot):
                    raise AtroposError(why, f"see {worker.log_path}") from None
                raise
            ended = snapshot.run.state in ENDED_STATES
            if ended or time.monotonic() >= tells_at:
                tells_at = time.monotonic() + TELL_SECONDS
                sys.stdout.write(summary_line(snapshot) + "\n")
                sys.stdout.flush()
            if ended:
                return _exit_status(snapshot.run.state, snapshot.run.why_ended)
            await asyncio.sleep(0.5)
    why = await tell_of_death(directory, worker, snapshot)
    raise AtroposError(why or f"the worker ended with status {worker.poll()}", f"see {worker.log_path}")


def _exit_status(state: RunState, why: str) -> int:
    if state is RunState.CRASHED:
        raise AtroposError(f"the run crashed: {why}")
    return 0
