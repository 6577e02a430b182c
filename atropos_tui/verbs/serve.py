"""`atropos-tui serve` and `attach`: an environment in a worker of its own, and the screen on it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.discovery import find_run, new_run_dir
from atropos_tui.monitor.supervisor import ChildProcess, launch
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.plain import summary_line

READY_SECONDS = 180.0
STOP_SECONDS = 60.0
TELL_SECONDS = 5.0


def serve_environment(environment: str, flags: Sequence[str], *, run_dir: Path | None, headless: bool) -> int:
    """Run an environment file in a worker and show it; returns the exit status.

    Raises UsageError for anything wrong with the file or the flags, before the screen opens.
    """
    path = Path(environment.rsplit(":", 1)[0] if ":" in environment else environment)
    directory = run_dir or new_run_dir(path.stem)
    directory.mkdir(parents=True, exist_ok=True)
    return run_interruptible(_serve(directory, environment, flags, headless))


def attach(run_dir: Path, *, read_only: bool) -> int:
    """Show a run that is there already. Raises UsageError when none answers."""
    run = find_run(run_dir)
    if run is None:
        raise UsageError(f"there is no run in {run_dir}", "name the directory that `serve` printed")
    if not run.alive:
        raise UsageError(f"the worker of the run in {run_dir} does not answer", f"its log is {run_dir / 'worker.log'}")
    return run_interruptible(_attach(run.worker.socket, run.worker.environment, read_only))


def print_environment_help(environment: str) -> int:
    """Print the config fields of an environment, with their defaults."""
    from atropos_tui.runtime.command_line import help_text
    from atropos_tui.runtime.loading import load_environment

    sys.stdout.write(help_text(load_environment(environment)) + "\n")
    return 0


async def _serve(directory: Path, environment: str, flags: Sequence[str], headless: bool) -> int:
    worker = _launch_worker(directory, environment, flags, detached=not headless)
    left_running = False
    try:
        ready = await asyncio.to_thread(worker.wait_ready, READY_SECONDS)
        if headless:
            return await _tell(worker, str(ready["socket"]))
        from atropos_tui.ui.quit import DETACH, STOP
        from atropos_tui.verbs.screen import show_run

        answer = await show_run(ready["socket"], title=environment, on_quit=(DETACH, STOP))
        left_running = answer != "stop"
    finally:
        if not left_running:
            await asyncio.shield(asyncio.to_thread(worker.terminate, STOP_SECONDS))
    if left_running:
        sys.stdout.write(f"the run goes on; watch it again with: atropos-tui attach {directory}\n")
    return 0


def _launch_worker(directory: Path, environment: str, flags: Sequence[str], detached: bool) -> ChildProcess:
    command = [sys.executable, "-m", "atropos_tui.worker"]
    arguments = ["--run-dir", str(directory), "--", environment, *flags]
    return launch(command, arguments, log_path=directory / "worker.log", detached=detached)


async def _attach(socket: str, title: str, read_only: bool) -> int:
    from atropos_tui.ui.quit import DETACH, STOP
    from atropos_tui.verbs.screen import show_run

    choices = (DETACH,) if read_only else (DETACH, STOP)
    answer = await show_run(socket, title=title, on_quit=choices, read_only=read_only)
    if answer == "stop":
        async with RunClient(socket) as client:
            await client.stop()
    return 0


async def _tell(worker: ChildProcess, socket: str) -> int:
    """Plain lines until the run ends; its end decides the exit status."""
    tells_at = 0.0
    async with RunClient(socket) as client:
        while worker.poll() is None:
            snapshot = await client.snapshot()
            ended = snapshot.run.state in ENDED_STATES
            if ended or time.monotonic() >= tells_at:
                tells_at = time.monotonic() + TELL_SECONDS
                sys.stdout.write(summary_line(snapshot) + "\n")
                sys.stdout.flush()
            if ended:
                return _exit_status(snapshot.run.state, snapshot.run.why_ended)
            await asyncio.sleep(0.5)
    raise AtroposError(f"the worker ended with status {worker.poll()}", f"see {worker.log_path}")


def _exit_status(state: RunState, why: str) -> int:
    if state is RunState.CRASHED:
        raise AtroposError(f"the run crashed: {why}")
    return 0
