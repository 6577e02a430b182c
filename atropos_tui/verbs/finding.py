"""Which run a person means: by its directory, its name, or the newest."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.monitor.discovery import FoundRun, find_run, list_runs, run_root

RUN_HELP = "a run's directory or name, or the beginning of its name (default: the newest one that is alive)"


def which_run(named: str | None) -> FoundRun:
    """Raises UsageError when there is none, or when several could be meant."""
    if named is None:
        return _newest()
    directory = Path(named).expanduser()
    if (run := find_run(directory)) is not None:
        return run
    if directory.is_dir() and "/" in named:
        raise UsageError(f"there is no run in {named}", "name the directory that `serve` printed")
    meant = [run for run in list_runs() if named in (run.run_dir.name, run.worker.run_id)]
    meant = meant or [run for run in list_runs() if run.run_dir.name.startswith(named)]
    if not meant:
        raise UsageError(f"there is no run {named!r}", f"`atropos-tui ls` lists the runs in {run_root()}")
    if len(meant) > 1:
        names = ", ".join(run.run_dir.name for run in meant[:5])
        raise UsageError(f"{named!r} could be any of {names}", "name one of them in full")
    return meant[0]


def alive_run(named: str | None) -> FoundRun:
    """Like `which_run`, but raises UsageError when its worker doesn't answer."""
    run = which_run(named)
    if run.alive:
        return run
    if run.elsewhere:
        raise UsageError(
            f"the worker of {run.run_dir.name} runs on {run.worker.host}", "go there, or attach to it by URL"
        )
    state = f"has ended ({run.worker.end_state})" if run.worker.ended_at else "is gone without a word"
    raise UsageError(
        f"the worker of {run.run_dir.name} {state}", f"look at what it left: atropos-tui open {run.run_dir}"
    )


def _newest() -> FoundRun:
    runs = list_runs()
    if not runs:
        raise UsageError(f"there is no run in {run_root()}", "start one with `atropos-tui serve`, or name a directory")
    return next((run for run in runs if run.alive), runs[0])
