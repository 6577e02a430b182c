"""Runs the operator's own command whenever an alert begins: a mail, a message, a page.

No shell ever sees what an alert says: it travels in environment variables. The command runs beside everything else,
one at a time, and is ended when it takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.new_alerts import NewAlerts, worth_telling
from atropos_tui.monitor.snapshot import Alert, RunSection

LOOK_SECONDS = 1.0
MOST_WAITING = 20

logger = logging.getLogger(__name__)


class AlertCommand:
    """`run_dir` is told to the command, together with the run and the alert."""

    def __init__(self, settings: AlertSettings, run_dir: Path) -> None:
        self._settings = settings
        self._run_dir = run_dir
        self._new = NewAlerts()

    async def follow(self, run: Callable[[], RunSection]) -> None:
        """Look at the run every second, until cancelled."""
        waiting: asyncio.Queue[tuple[RunSection, Alert]] = asyncio.Queue(MOST_WAITING)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._run_one_by_one(waiting))
            while True:
                section = run()
                for alert in self._new.among(worth_telling(section)):
                    # Who is told of twenty alerts needs to hear of no other.
                    with contextlib.suppress(asyncio.QueueFull):
                        waiting.put_nowait((section, alert))
                await asyncio.sleep(LOOK_SECONDS)

    async def _run_one_by_one(self, waiting: asyncio.Queue[tuple[RunSection, Alert]]) -> None:
        while True:
            if fault := await self.tell(*await waiting.get()):
                logger.warning(fault)

    async def tell(self, run: RunSection, alert: Alert) -> str:
        """Run the command for one alert, to its end; returns what went wrong with it, empty if nothing did."""
        command = self._settings.command
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=os.environ | variables(run, alert, self._run_dir),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"the command for alerts, {command[0]}, cannot be run: {error}"
        try:
            async with asyncio.timeout(self._settings.command_timeout):
                status = await process.wait()
        except TimeoutError:
            return f"the command for alerts took over {self._settings.command_timeout:g} s and was ended"
        else:
            return f"the command for alerts ended with exit status {status}" if status else ""
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def variables(run: RunSection, alert: Alert, run_dir: Path) -> Mapping[str, str]:
    """What the command is told. A zero byte, which no variable can hold, is left out."""
    told = {
        "ATROPOS_ALERT": alert.name,
        "ATROPOS_ALERT_TEXT": alert.text,
        "ATROPOS_ALERT_SEVERE": "1" if alert.severe else "0",
        "ATROPOS_RUN": run.run_id,
        "ATROPOS_RUN_DIR": str(run_dir),
        "ATROPOS_ENVIRONMENT": run.environment,
        "ATROPOS_STATE": run.state,
    }
    return {name: value.replace("\0", "") for name, value in told.items()}
