"""A run that ended, in the directory where it ran: its record, and the worker that may go on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.monitor.recorded.recorded_run import RecordedRun

if TYPE_CHECKING:
    from atropos_tui.monitor.live_run import LiveRun
    from atropos_tui.monitor.packed_content import Decode


class EndedRun(RecordedRun):
    """`as_live` gives the same directory as a run to watch and command, which can start its worker."""

    def __init__(
        self, path: Path, decode: Decode, is_alive: Callable[[], bool], *, as_live: Callable[[], LiveRun]
    ) -> None:
        super().__init__(path, decode, is_alive)
        self._as_live = as_live

    async def restart(self) -> LiveRun:
        """Let a worker go on with the run; what is to be watched from then on. Raises AtroposError as LiveRun does."""
        live = self._as_live()
        try:
            await live.restart()
        except BaseException:
            await live.close()
            raise
        return live
