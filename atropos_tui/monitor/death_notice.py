"""Tells the operator's own command of a worker that was killed, for that one can tell nobody any more.

Whoever watches the run does it: a screen, `serve`, `demo`. Of several only the first, which notes it in the directory
of the run; who may not write there is not whom the command is for.
"""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.errors import UsageError
from atropos_tui.monitor.new_alerts import worth_telling
from atropos_tui.user_config import CONFIG_FILE, config_directory

if TYPE_CHECKING:
    from atropos_tui.monitor.discovery import WorkerFile
    from atropos_tui.monitor.snapshot import RunSection


class DeathNotice:
    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir

    async def tell(self, run: RunSection, worker: WorkerFile) -> None:
        """Run the command for a run that is shown as crashed because this worker is gone; once a worker.

        What goes wrong with the command is a line at the end of the worker's log.
        """
        # Reading the configuration takes a while, and hardly any screen comes to this.
        from atropos_tui.monitor.alert_command import AlertCommand
        from atropos_tui.monitor.alert_settings import load_alert_settings

        try:
            settings = await asyncio.to_thread(load_alert_settings, config_directory() / CONFIG_FILE)
        except UsageError as error:
            await asyncio.to_thread(self._log, str(error))
            return
        if not settings.command or not await asyncio.to_thread(self._is_first, worker, run.why_ended):
            return
        (alert,) = worth_telling(run)
        if fault := await AlertCommand(settings, self._run_dir).tell(run, alert):
            await asyncio.to_thread(self._log, fault)

    def _is_first(self, worker: WorkerFile, why: str) -> bool:
        note = self._run_dir / f"killed-{worker.pid}-{int(worker.started_at)}"
        try:
            with os.fdopen(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(f"told the command for alerts: {why}\n")
        except OSError as error:
            # Where the disk is full, being told twice is better than never.
            return error.errno in (errno.ENOSPC, errno.EDQUOT)
        return True

    def _log(self, text: str) -> None:
        try:
            with (self._run_dir / "worker.log").open("a", encoding="utf-8") as log:
                log.write(f"{text}\n")
        except OSError:
            return  # nobody is left who could be told
