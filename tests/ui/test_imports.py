"""The screen starts fast: it loads none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "httpx",
    "transformers",
    "wandb",
    "openai",
    "numpy",
    "fastapi",
    "starlette",
    "uvicorn",
    "pydantic_settings",
    "yaml",
)


def test_the_screen_loads_no_heavy_library() -> None:
    program = f"import sys, atropos_tui.ui.app; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


def test_before_the_first_picture_nothing_is_loaded_that_only_workers_and_events_need() -> None:
    unwanted = (*HEAVY, "pydantic", "pydantic_core", "orjson", "atropos_tui.monitor.model", "atropos_tui.ledger.events")
    verbs = "atropos_tui.verbs.attach, atropos_tui.verbs.open, atropos_tui.verbs.screen"
    modules = f"atropos_tui.cli, {verbs}, atropos_tui.monitor.recorded.recorded_run"
    program = f"import sys, {modules}; print([name for name in {unwanted} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


def test_attaching_loads_nothing_of_records_filters_and_starting_workers() -> None:
    unwanted = (
        "sqlite3",
        "statistics",
        "secrets",
        "atropos_tui.monitor.group_filter",
        "atropos_tui.monitor.notes",
        "atropos_tui.monitor.supervisor",
    )
    modules = "atropos_tui.cli, atropos_tui.verbs.attach, atropos_tui.verbs.screen"
    program = f"import sys, {modules}; print([name for name in {unwanted} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


SCREENS_AFTER_THE_FIRST = """
import asyncio, sys
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.loading import SCREENS
from atropos_tui.monitor.client import RunClient

class Noting(AtroposApp):
    early = None

    def _display(self, screen, renderable):
        if self.early is None and renderable is not None:
            self.early = loaded()
        super()._display(screen, renderable)

def loaded():
    return [name for name in SCREENS if f"atropos_tui.ui.{name}" in sys.modules]

async def main():
    app = Noting(RunClient("/nowhere"))
    async with app.run_test() as pilot:
        async with asyncio.timeout(30):
            while len(loaded()) < len(SCREENS):
                await pilot.pause()
    print(app.early)

asyncio.run(main())
"""


def test_the_screens_behind_the_keys_are_loaded_after_the_first_picture_and_before_a_key() -> None:
    command = [sys.executable, "-c", SCREENS_AFTER_THE_FIRST]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
