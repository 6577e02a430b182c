"""Without a screen too the operator is told of a worker that was killed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import ENDED_STATES
from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.discovery import find_run
from atropos_tui.monitor.live_run import found_dead
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.monitor.supervisor import ChildProcess
from atropos_tui.user_config import CONFIG_FILE, config_directory

# From closing its socket to being seen to be gone.
GONE_SECONDS = 2.0


async def tell_of_death(run_dir: Path, worker: ChildProcess, last: RunSnapshot) -> str:
    """Why a worker that does not answer any more died, once its command and its bell have told that.

    `last` is the newest snapshot of the run that is known. Empty when the worker lives or has ended in order.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.to_thread(worker.wait, GONE_SECONDS)
    run = await asyncio.to_thread(find_run, run_dir)
    if worker.poll() is None or run is None or not run.stale or last.run.state in ENDED_STATES:
        return ""
    dead = found_dead(last, run, worker.poll(), time.time())
    if sys.stderr.isatty() and await asyncio.to_thread(_wants_bell):
        sys.stderr.write("\a")
        sys.stderr.flush()
    await DeathNotice(run_dir).tell(dead.run, run.worker)
    return dead.run.why_ended


def _wants_bell() -> bool:
    from atropos_tui.monitor.alert_settings import load_alert_settings

    try:
        return load_alert_settings(config_directory() / CONFIG_FILE).bell
    except UsageError:
        return False  # the notice says what is wrong with it
