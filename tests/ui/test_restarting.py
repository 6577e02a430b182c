"""`R` starts a run again that is over, after a question, and the screen goes on with what comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.fleet import FleetRun
from atropos_tui.monitor.recorded.timeline import Stride, Timeline
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.fleet import FleetScreen
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource, crashed, finished, running
from tests.ui.recorded_fleet import RecordedFleet
from tests.ui.screen_steps import SIZE, asked, known


class EndedRun(RecordedSource):
    """A record that can go on: as `goes_on`, or else as itself."""

    def __init__(self, *snapshots: RunSnapshot) -> None:
        super().__init__(*snapshots)
        self.timeline = Timeline(0.0, 100.0)
        self.goes_on: RecordedSource = self
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.refusal: AtroposError | None = None
        self.restarts = 0

    def seek(self, position: float | None) -> None:
        raise NotImplementedError

    async def move(self, stride: Stride, by: int) -> None:
        raise NotImplementedError

    async def restart(self) -> RecordedSource:
        self.restarts += 1
        await self.may_start.wait()
        if self.refusal is not None:
            raise self.refusal
        return self.goes_on


async def opened(pilot: Pilot[Any], source: RecordedSource) -> ListenedApp:
    """The next run of the fleet, opened."""
    app = pilot.app
    assert isinstance(app, ListenedApp)
    await pilot.press("F")
    await until(pilot, lambda: isinstance(app.screen, FleetScreen))
    await pilot.press("enter")
    await until(pilot, lambda: app.source is source and isinstance(app.screen, DashboardScreen))
    return await known(pilot)


def from_fleet(make_app: MakeApp, *sources: RecordedSource, read_only: bool = False) -> ListenedApp:
    """An app with a fleet that opens these, one after the other."""
    waiting = list(sources)

    def open_run(run: FleetRun) -> RecordedSource:
        del run
        return waiting.pop(0)

    return make_app(fleet=RecordedFleet(), open_run=open_run, read_only=read_only)


@pytest.mark.parametrize("ended", [crashed(), finished()], ids=["crashed", "finished"])
async def test_a_run_opened_from_the_fleet_goes_on_with_its_new_worker(make_app: MakeApp, ended: RunSnapshot) -> None:
    source, live = EndedRun(ended), RecordedSource(running())
    source.goes_on = live
    app = from_fleet(make_app, source)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, source)
        await pilot.press("R")
        question = await asked(pilot)
        assert "again?" in question
        assert "its outbox, its record and its data" in question
        await pilot.press("y")
        await until(pilot, lambda: app.source is live and app.moment.known and not app.moment.ended)
        await until(pilot, lambda: "close" in source.commands)
        await pilot.press("p")
        await until(pilot, lambda: live.commands == ["pause"])


async def test_it_asks_first_and_no_means_no(make_app: MakeApp) -> None:
    source = EndedRun(crashed())
    app = from_fleet(make_app, source)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, source)
        await pilot.press("R")
        await asked(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
        assert (source.restarts, app.source) == (0, source)


async def test_a_worker_that_does_not_come_is_told_and_the_record_stays(make_app: MakeApp) -> None:
    source = EndedRun(crashed())
    source.refusal = UsageError("it is not known how the run was started", "start it with serve")
    app = from_fleet(make_app, source)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, source)
        await pilot.press("R")
        await asked(pilot)
        await pilot.press("y")
        await until(pilot, lambda: app.said[-1:] == ["it is not known how the run was started; start it with serve"])
        assert app.source is source


async def test_what_came_too_late_is_closed_when_another_run_is_looked_at(make_app: MakeApp) -> None:
    source, other, late = EndedRun(crashed()), EndedRun(finished()), RecordedSource(running())
    source.goes_on = late
    source.may_start.clear()
    app = from_fleet(make_app, source, other)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, source)
        await pilot.press("R")
        await asked(pilot)
        await pilot.press("y")
        await until(pilot, lambda: source.restarts)
        await opened(pilot, other)
        source.may_start.set()
        await until(pilot, lambda: "close" in late.commands)
        assert app.source is other


async def test_it_is_refused_where_it_cannot_be(make_app: MakeApp) -> None:
    async def said(app: ListenedApp, source: RecordedSource) -> str:
        async with app.run_test(size=SIZE) as pilot:
            await opened(pilot, source)
            await pilot.press("R")
            await until(pilot, lambda: app.said)
            return app.said[-1]

    ended = EndedRun(crashed())
    assert "read-only" in await said(from_fleet(make_app, ended, read_only=True), ended)
    earlier = EndedRun(running())
    earlier.timeline = Timeline(0.0, 100.0, at=50.0)
    assert "an earlier moment of the run; $ leads to its end" in await said(from_fleet(make_app, earlier), earlier)
    at_work = EndedRun(running())
    assert "the run goes on" in await said(from_fleet(make_app, at_work), at_work)
    elsewhere = RecordedSource(crashed())
    assert "only be started again where it ran" in await said(from_fleet(make_app, elsewhere), elsewhere)
    assert [source.restarts for source in (ended, earlier, at_work)] == [0, 0, 0]
