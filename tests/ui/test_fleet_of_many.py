"""A fleet of many runs, many of which cannot be asked: what can be is on top, and nothing is left out in silence."""

from __future__ import annotations

from dataclasses import replace

from atropos_tui.monitor.fleet import FleetRun, Presence
from atropos_tui.monitor.summary import RunSummary
from atropos_tui.ui.fleet import FleetPane, FleetScreen
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import NOW
from tests.ui.recorded_fleet import RecordedFleet, fleet_runs, found
from tests.ui.screen_steps import known, painted

URL = "http://node17:7777"
SILENT = FleetRun(URL, URL, Presence.SILENT, why="the worker at http://node17:7777 does not answer (timed out)")


async def shown(make_app: MakeApp, fleet: RecordedFleet, size: tuple[int, int] = (80, 24)) -> str:
    app = make_app(fleet=fleet)
    async with app.run_test(size=size) as pilot:
        await known(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        return painted(app.screen.query_one(FleetPane))


async def test_what_the_first_run_is_to_be_started_with_is_told_in_full_at_80_columns(make_app: MakeApp) -> None:
    words = (await shown(make_app, RecordedFleet([]))).replace("│", " ").split()
    told = "no run is known: start one with `atropos-tui serve`, or give URLs to `atropos-tui fleet`"
    assert told in " ".join(words)


async def test_runs_given_by_url_stand_above_those_that_cannot_be_asked_from_here(make_app: MakeApp) -> None:
    elsewhere = [replace(found(f"run-{n}", Presence.ELSEWHERE, n), why="it runs on node4") for n in range(30)]
    picture = await shown(make_app, RecordedFleet([*elsewhere, SILENT, fleet_runs()[0]]))
    rows = picture.splitlines()[2:]
    assert [row[2] for row in rows[:3]] == ["●", "○", "◇"]
    assert "1 alive · 1 silent · 30 elsewhere · 0 ended" in picture


async def test_older_runs_that_are_left_out_are_counted(make_app: MakeApp) -> None:
    fleet = RecordedFleet()
    fleet.left_out = 1_234
    assert "2 ended · 1,234 older" in await shown(make_app, fleet)


async def test_of_a_run_without_a_record_it_is_known_when_it_ended(make_app: MakeApp) -> None:
    ended = replace(found("gone", Presence.ENDED, 9_000), summary=RunSummary(ended_at=NOW - 7_300), why="done")
    picture = await shown(make_app, RecordedFleet([ended]), (120, 40))
    row = next(line for line in picture.splitlines() if "gone" in line)
    assert row.rstrip("│ ").endswith("2.0h")
    assert "–" in row


async def test_where_all_have_ended_and_are_left_out_the_key_is_named_that_shows_them(make_app: MakeApp) -> None:
    app = make_app(fleet=RecordedFleet([run for run in fleet_runs() if run.ended]))
    async with app.run_test(size=(80, 24)) as pilot:
        await known(pilot)
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.press("x")
        pane = app.screen.query_one(FleetPane)
        await until(pilot, lambda: "all runs have ended; x shows them" in painted(pane))
