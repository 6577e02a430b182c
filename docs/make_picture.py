"""Make the README's picture from a real run: `python docs/make_picture.py [SECONDS]`.

Starts the demo's four processes, lets the policy learn for a while, and saves what the dashboard shows as soon as some
groups are in flight then.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from atropos_tui.monitor.client import RunClient
from atropos_tui.ui.app import AtroposApp
from atropos_tui.verbs.pocket_loop import pocket_loop

PICTURE = Path(__file__).with_name("dashboard.svg")
SIZE = (132, 42)
FEWEST_IN_FLIGHT = 5


async def make_picture(seconds: float) -> None:
    async with pocket_loop(seed=0) as loop, RunClient(loop.socket) as client:
        app = AtroposApp(client, title="demo", mouse=False, theme="dusk")
        async with app.run_test(size=SIZE) as pilot:
            await asyncio.sleep(seconds)
            async with asyncio.timeout(60):
                while len(app.moment.snapshot.queue.rows) < FEWEST_IN_FLIGHT:
                    await pilot.pause(0.1)
            await pilot.pause()
            PICTURE.write_text(app.export_screenshot(title="atropos-tui demo"), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(make_picture(float(sys.argv[1]) if len(sys.argv) > 1 else 90.0))
