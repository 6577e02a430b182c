"""The run in a directory, alive or ended, so that it can be watched, commanded and started again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.verbs.decoding import TokenizerOfRun
from atropos_tui.verbs.recordings import writer_is_alive
from atropos_tui.verbs.starting import WorkerStarter

if TYPE_CHECKING:
    from atropos_tui.monitor.recorded.ended_run import EndedRun


def live_run(run_dir: Path) -> LiveRun:
    """With its worker, and with the next one when that is gone."""
    return live_run_of(WorkerStarter(run_dir), run_dir)


def live_run_of(starter: WorkerStarter, run_dir: Path) -> LiveRun:
    """The same where it is known how its worker was started."""
    return LiveRun(
        run_dir, TokenizerOfRun(run_dir / RUN_FILE), starter.exit_status,
        start_again=starter.restart, death_notice=DeathNotice(run_dir),
    )  # fmt: skip


def ended_run(run_dir: Path) -> EndedRun:
    """With its record. Raises RunFileError when that cannot be read."""
    from atropos_tui.monitor.recorded.ended_run import EndedRun  # loading it takes a while

    path = run_dir / RUN_FILE
    return EndedRun(path, TokenizerOfRun(path), writer_is_alive(path), as_live=partial(live_run, run_dir))
