"""The first picture: drawn once, and with numbers where a snapshot is known already."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import RenderableType
from textual.screen import Screen

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.snapshot import RunSection, RunSnapshot
from atropos_tui.ui.header import Header
from atropos_tui.ui.panes.queue import QueuePane
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import NOW, RecordedSource, running
from tests.ui.screen_steps import SIZE, painted


class SilentSource(RecordedSource):
    """A run whose stream has nothing to say."""

    async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        del hz
        await asyncio.Event().wait()
        yield RunSnapshot()


class PicturedApp(ListenedApp):
    """Keeps what the canvases showed in its first picture."""

    first_picture: str = ""

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if not self.first_picture and self.screen.query(Canvas):
            self.first_picture = "\n".join(
                painted(canvas) for canvas in (screen.query_one(Header), screen.query_one(QueuePane))
            )
        super()._display(screen, renderable)


def pictured_app(first: RunSnapshot | None) -> PicturedApp:
    return PicturedApp(SilentSource(), first=first, clock=lambda: 0.0, wall_clock=lambda: NOW, theme="dusk")


async def test_the_first_picture_has_the_numbers_of_a_snapshot_that_is_known_already() -> None:
    pictured = pictured_app(running())
    async with pictured.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: pictured.first_picture)
        assert "backlog" in pictured.first_picture


async def test_what_the_run_tells_after_it_is_drawn_too(make_app: MakeApp) -> None:
    later = replace(running(), seq=running().seq + 1, taken_at=NOW + 1)
    app = make_app(later, first=running())
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.moment.snapshot == later)


async def test_without_one_the_first_picture_has_the_panes_and_no_numbers() -> None:
    pictured = pictured_app(None)
    async with pictured.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: pictured.first_picture)
        assert "Rollout queue" in pictured.first_picture
        assert "backlog" not in pictured.first_picture


@pytest.mark.parametrize("state", [RunState.STARTING, RunState.CRASHED])
async def test_a_run_of_which_nobody_knows_when_it_began_has_no_age(make_app: MakeApp, state: RunState) -> None:
    unknown = RunSnapshot(seq=1, taken_at=NOW, run=RunSection(state=state, ended_at=NOW))
    app = make_app(unknown)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.moment.known)
        header = painted(app.screen.query_one(Header))
        assert state in header
        assert "up " not in header
        assert "took" not in header
