"""Make the pictures of `docs/walkthrough.md`: `python -m docs.make_walkthrough [--size 120x34]`.

Each trouble is told to the real monitor and watched by the real screen: the dashboard, then what its keys lead to.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from atropos_tui.monitor.client import RunClient
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.leaving import Answer
from docs.troubles import TROUBLES, Trouble

PICTURES = Path(__file__).with_name("pictures")
SIZE = (120, 34)
PATIENCE = 60.0


@asynccontextmanager
async def watching(trouble: Trouble, size: tuple[int, int] = SIZE) -> AsyncIterator[Pilot[Answer]]:
    """The screen on the story, as one sees it first."""
    with trouble.story().watched() as socket:
        async with RunClient(socket) as client:
            app = AtroposApp(client, mouse=False, theme="dusk", clock=lambda: 0.0)
            async with app.run_test(size=size) as pilot:
                await until_shown(pilot, trouble.seen_first)
                yield pilot


async def until_shown(pilot: Pilot[Answer], text: str) -> None:
    """Raises AssertionError, with what is on the screen instead."""
    async with asyncio.timeout(PATIENCE):
        while text not in shown(pilot):
            await pilot.pause(0.05)


def shown(pilot: Pilot[Answer]) -> str:
    """The characters on the screen, line by line."""
    screen = pilot.app.screen
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


async def make_pictures(size: tuple[int, int]) -> None:
    PICTURES.mkdir(exist_ok=True)
    for trouble in TROUBLES:
        async with watching(trouble, size) as pilot:
            save(pilot, f"{trouble.name}_1")
            await pilot.press(*trouble.keys)
            await until_shown(pilot, trouble.cause)
            await pilot.pause(0.5)
            save(pilot, f"{trouble.name}_2")


def save(pilot: Pilot[Answer], name: str) -> None:
    picture = pilot.app.export_screenshot(title="atropos-tui")
    (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default=f"{SIZE[0]}x{SIZE[1]}", metavar="COLUMNSxLINES")
    columns, lines = map(int, parser.parse_args().size.split("x"))
    asyncio.run(make_pictures((columns, lines)))
