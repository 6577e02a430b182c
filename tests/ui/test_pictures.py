"""What the screens look like: SVG snapshots. Look at them before accepting changes (`--snapshot-update`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.errors import AtroposError
from atropos_tui.ui.app import AtroposApp
from tests.ui import recorded
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import RecordedSource

SmallLayout, MiddleLayout, WideLayout = (80, 24), (120, 40), (200, 60)
SIZES = [SmallLayout, MiddleLayout, WideLayout]
SnapCompare = Callable[..., bool]


def pressing(*keys: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Wait for the first snapshot, then press keys one by one."""

    async def run(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, AtroposApp)
        await until(pilot, lambda: app.moment.known)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()

    return run


@pytest.mark.parametrize("theme", ["dusk", "dawn"])
@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
def test_the_dashboard_of_a_run_in_full_swing(
    snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int], theme: str
) -> None:
    assert snap_compare(make_app(theme=theme), terminal_size=size, run_before=pressing())


@pytest.mark.parametrize("state", ["starting", "pausing", "paused", "evaluating", "crashed", "finished"])
def test_each_state_of_a_run(snap_compare: SnapCompare, make_app: MakeApp, state: str) -> None:
    app = make_app(getattr(recorded, state)())
    assert snap_compare(app, terminal_size=MiddleLayout, run_before=pressing())


def test_a_starting_run_on_a_small_terminal(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(recorded.starting()), terminal_size=SmallLayout, run_before=pressing())


def test_before_the_first_snapshot(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    app = make_app(source=RecordedSource(), title="reverse_strings")
    assert snap_compare(app, terminal_size=SmallLayout)


def test_a_lost_connection_shows_the_last_numbers_and_says_that_they_are_old(
    snap_compare: SnapCompare, make_app: MakeApp
) -> None:
    source = RecordedSource(recorded.running())
    app = make_app(source=source)

    async def lose(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.moment.known)
        source.break_off(AtroposError("the worker at /run/k7fq/control.sock does not answer"))
        await until(pilot, lambda: "disconnected" in app.screen.query_one("#header").draw(80, 2)[0].plain)

    assert snap_compare(app, terminal_size=MiddleLayout, run_before=lose)


def test_a_ledger_that_is_off_turns_the_header_red(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(recorded.out_of_balance()), terminal_size=SmallLayout, run_before=pressing())


@pytest.mark.parametrize("number", ["1", "2", "3", "4", "5"])
def test_each_pane_zoomed(snap_compare: SnapCompare, make_app: MakeApp, number: str) -> None:
    assert snap_compare(make_app(), terminal_size=MiddleLayout, run_before=pressing(number, "z"))


@pytest.mark.parametrize("theme", ["midnight", "terminal"])
def test_the_dashboard_in_the_other_themes(snap_compare: SnapCompare, make_app: MakeApp, theme: str) -> None:
    assert snap_compare(make_app(theme=theme), terminal_size=MiddleLayout, run_before=pressing())


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
def test_the_help_of_the_dashboard(snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing("question_mark"))


@pytest.mark.parametrize("size", [SmallLayout, MiddleLayout], ids="{0[0]}x{0[1]}".format)
def test_the_question_before_leaving(snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing("q"))


@pytest.mark.parametrize("key", ["l", "e", "a"])
def test_logs_evaluations_and_alerts(snap_compare: SnapCompare, make_app: MakeApp, key: str) -> None:
    assert snap_compare(make_app(), terminal_size=MiddleLayout, run_before=pressing(key))


def test_a_crash_opens_in_the_logs_with_its_traceback(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(recorded.crashed()), terminal_size=SmallLayout, run_before=pressing("l"))


def test_a_read_only_screen_greys_the_commands_out(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(read_only=True), terminal_size=SmallLayout, run_before=pressing())
