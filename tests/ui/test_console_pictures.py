"""What fleet, configuration, queue and the questions look like, and the dashboard in every theme: SVG snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.snapshot import Alert
from atropos_tui.ui.moment import Contact
from atropos_tui.ui.themes import shipped_theme_files
from tests.ui import recorded
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import RecordedSource
from tests.ui.recorded_fleet import RecordedFleet
from tests.ui.test_pictures import SIZES, MiddleLayout, SmallLayout, SnapCompare, WideLayout, pressing

NAMED = "{0[0]}x{0[1]}".format


@pytest.mark.parametrize("size", SIZES, ids=NAMED)
def test_the_fleet(snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]) -> None:
    app = make_app(fleet=RecordedFleet())
    assert snap_compare(app, terminal_size=size, run_before=pressing("F", "j", "m", "j"))


@pytest.mark.parametrize("size", SIZES, ids=NAMED)
def test_the_configuration(snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing("c"))


def test_a_filtered_configuration(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    keys = ("c", "slash", *"yaml url")
    assert snap_compare(make_app(), terminal_size=SmallLayout, run_before=pressing(*keys))


@pytest.mark.parametrize("size", SIZES, ids=NAMED)
def test_the_queue_zoomed_in_another_order(snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing("1", "z", "o", "j"))


@pytest.mark.parametrize("size", [SmallLayout, WideLayout], ids=NAMED)
@pytest.mark.parametrize("number", ["2", "3", "4", "5"])
def test_each_other_pane_zoomed_at_the_other_sizes(
    snap_compare: SnapCompare, make_app: MakeApp, number: str, size: tuple[int, int]
) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing(number, "z"))


@pytest.mark.parametrize("size", [SmallLayout, WideLayout], ids=NAMED)
@pytest.mark.parametrize("key", ["l", "e", "a"])
def test_logs_evaluations_and_alerts_at_the_other_sizes(
    snap_compare: SnapCompare, make_app: MakeApp, key: str, size: tuple[int, int]
) -> None:
    assert snap_compare(make_app(), terminal_size=size, run_before=pressing(key))


def test_many_alerts(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    texts = {
        "no_progress": "no progress for over 300 s: waiting for the trainer to take groups: its queue is full",
        "zero_advantage": "14 groups in a row with identical scores (too easy): the trainer learns nothing from them",
        "length_drift": "replies are 3.1 times as long as at the beginning (120 → 372 tokens), while the mean score "
        "went from 0.31 to 0.33",
        "doubled_end": "in 12 of the last 128 rollouts looked at the end-of-turn token (2) stands twice in a row: "
        "it is sampled, and the chat template or the environment adds another",
    }
    alerts = tuple(Alert(name, text, recorded.NOW - 90, name == "no_progress", -1) for name, text in texts.items())
    run = replace(recorded.running().run, alerts=alerts)
    app = make_app(replace(recorded.running(), run=run))
    assert snap_compare(app, terminal_size=SmallLayout, run_before=pressing("a", "j", "j", "j"))


@pytest.mark.parametrize("keys", [("1", "x"), ("P",), ("E",)], ids=["cancel", "pause now", "evaluate"])
def test_the_questions_before_a_command(snap_compare: SnapCompare, make_app: MakeApp, keys: tuple[str, ...]) -> None:
    assert snap_compare(make_app(), terminal_size=SmallLayout, run_before=pressing(*keys))


def test_the_question_before_pausing_several_runs_names_them(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    app = make_app(fleet=RecordedFleet())
    assert snap_compare(app, terminal_size=SmallLayout, run_before=pressing("F", "A", "p"))


@pytest.mark.parametrize("theme", shipped_theme_files())
def test_the_dashboard_in_every_theme_without_colours(
    snap_compare: SnapCompare, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    """Whatever the theme, the line of the cursor stands out."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(make_app(theme=theme), terminal_size=MiddleLayout, run_before=pressing())


@pytest.mark.parametrize("size", [SmallLayout, WideLayout], ids=NAMED)
@pytest.mark.parametrize("state", ["starting", "paused", "evaluating", "crashed", "finished"])
def test_each_state_of_a_run_at_the_other_sizes(
    snap_compare: SnapCompare, make_app: MakeApp, state: str, size: tuple[int, int]
) -> None:
    assert snap_compare(make_app(getattr(recorded, state)()), terminal_size=size, run_before=pressing())


@pytest.mark.parametrize("size", [SmallLayout, WideLayout], ids=NAMED)
def test_a_lost_connection_at_the_other_sizes(
    snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int]
) -> None:
    source = RecordedSource(recorded.running())
    app = make_app(source=source)

    async def lose(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.moment.known)
        source.break_off(AtroposError("the worker at /run/k7fq/control.sock does not answer"))
        await until(pilot, lambda: app.moment.contact is Contact.DISCONNECTED)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=lose)
