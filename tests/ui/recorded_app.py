"""The screen on a recorded run, as a process of its own: `python -m tests.ui.recorded_app STATE [STATE …]`.

Plays the states one after another under a frozen clock, `busy` standing for a pause and
forty snapshots in which three groups move.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.leaving import DETACH, STOP
from tests.ui import recorded

BUSY_SNAPSHOTS = 40


class Playing(recorded.RecordedSource):
    """Leaves the app time to draw each snapshot."""

    async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        for state in sys.argv[1:]:
            if state == "busy":
                await asyncio.sleep(1.5)
            for snapshot in busy() if state == "busy" else [getattr(recorded, state)()]:
                yield snapshot
                await asyncio.sleep(0.02)
        await asyncio.Event().wait()


def busy() -> Iterator[RunSnapshot]:
    """A running snapshot, changed a little each time; the last one says so in its headline."""
    snapshot = recorded.running()
    rows = list(snapshot.queue.rows)
    for number in range(BUSY_SNAPSHOTS):
        for index in (number % 8, (number + 3) % 8, (number + 6) % 8):
            done = (rows[index].rollouts_done + 1) % 9
            rows[index] = replace(rows[index], rollouts_done=done, completion_tokens=done * 14)
        run = replace(snapshot.run, headline="that was all" if number == BUSY_SNAPSHOTS - 1 else "", alerts=())
        yield replace(snapshot, run=run, queue=replace(snapshot.queue, rows=tuple(rows)))


if __name__ == "__main__":
    app = AtroposApp(Playing(), on_quit=(STOP, DETACH), clock=lambda: 0.0)
    print(f"answer {app.run()!r}", flush=True)  # noqa: T201
    sys.exit(app.return_code)
