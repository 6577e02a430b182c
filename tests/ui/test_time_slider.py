"""The time slider: a recorded run is moved through, and the whole screen shows that moment."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.ledger.events import RunConfigured, ServerHealth, TrainerStatus
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.recorded.recorded_run import RecordedRun
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import RecordSection
from atropos_tui.ui.keys import Scope, commands
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.group_list import GroupListPane
from atropos_tui.ui.time_slider import TimeSlider, track
from atropos_tui.ui.user_files import UserFiles
from tests.run_file.hand_clock import HandClock
from tests.run_file.recorded_run import RecordedRun as Recording
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource

SIZES = [(80, 24), (120, 40), (200, 60)]
STEPS, GROUPS_A_STEP = 20, 6


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The slider tells local times."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Twenty steps of a minute each, in which the scores climb; some groups are skipped, some fail."""
    clock = HandClock()
    run = Recording(tmp_path / "run.db", clock=clock)
    run.stream.publish(
        RunConfigured, api_url="http://localhost:8000", env_id=0, starting_step=0, total_steps=100, batch_size=8,
        max_token_len=64,
    )  # fmt: skip
    run.stream.publish(
        ServerHealth, server=0, url="http://localhost:9001/v1", server_type="openai", model_name="small", healthy=True,
        limit=8, eval_limit=4,
    )  # fmt: skip
    for step in range(1, STEPS + 1):
        for number in range(GROUPS_A_STEP):
            clock.go_on(60.0 / GROUPS_A_STEP)
            if number == 1:
                run.skipped(score=0.0)
            elif number == 4 and step % 5 == 0:
                run.failed()
            else:
                run.delivered(score=step / STEPS - 1)
        run.stream.publish(
            TrainerStatus, step=step, batch_size=8, queue_size=2, queue_limit=-1, self_queue_size=2,
            env_weight=1.0, unallocated_fraction=0.0,
        )  # fmt: skip
    run.close()
    return run.path


@pytest.fixture
def make_recorded(make_app: MakeApp, record: Path) -> Callable[..., ListenedApp]:
    def make(**options: Any) -> ListenedApp:
        source: Any = RecordedRun(record, lambda ids: [], is_alive=lambda: False)
        return make_app(source=source, read_only=True, **options)

    return make


def delivered(app: ListenedApp) -> int:
    return app.moment.snapshot.ledger.by_outcome.get(Outcome.DELIVERED, 0)


def slider_text(app: ListenedApp) -> str:
    slider = app.screen.query_one(TimeSlider)
    return slider.draw(slider.size.width, 1)[0].plain


def share(wanted: float) -> Callable[[Moment], object]:
    """Whether the moment that is shown is the one at this share of the run."""

    def is_there(moment: Moment) -> bool:
        timeline = moment.timeline
        return (
            timeline is not None
            and timeline.share == pytest.approx(wanted)
            and moment.snapshot.taken_at == pytest.approx(timeline.position, abs=0.01)
        )

    return is_there


async def settled(pilot: Pilot[Any], app: ListenedApp, at: Callable[[Moment], object]) -> None:
    await until(pilot, lambda: app.moment.known and app.moment.timeline and app.moment.timeline.exact)
    await until(pilot, lambda: at(app.moment))


async def test_keys_move_by_event_step_minute_and_tenth(make_recorded: Callable[..., ListenedApp]) -> None:
    app = make_recorded()
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        newest = app.moment.snapshot.seq
        await pilot.press("left_square_bracket")
        await settled(pilot, app, lambda moment: moment.snapshot.seq == newest - 1)
        await pilot.press("left_square_bracket", "left_square_bracket", "right_square_bracket")
        await settled(pilot, app, lambda moment: moment.snapshot.seq == newest - 2)
        await pilot.press("left_curly_bracket", "left_curly_bracket")
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS - 2)
        await pilot.press("right_curly_bracket")
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS - 1)
        here = app.moment.timeline
        assert here is not None
        await pilot.press("less_than_sign")
        await settled(pilot, app, lambda moment: moment.timeline.position == here.position - 60)  # type: ignore[union-attr]
        await pilot.press("greater_than_sign", "minus", "plus")
        await settled(pilot, app, lambda moment: moment.timeline.position == pytest.approx(here.position))  # type: ignore[union-attr]
        await pilot.press("0")
        await settled(pilot, app, lambda moment: moment.snapshot.ledger.started == 0)
        await pilot.press("dollar_sign")
        await settled(pilot, app, lambda moment: moment.snapshot.seq == newest)
        assert app.said == []


async def test_the_whole_screen_shows_the_moment_and_no_age_in_it_grows(
    make_recorded: Callable[..., ListenedApp],
) -> None:
    now = [0.0]
    app = make_recorded(clock=lambda: now[0])
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        await pilot.press(*["minus"] * 5)
        await settled(pilot, app, share(0.5))
        assert "running" in app.screen.query_one("#header").draw(120, 3)[0].plain
        assert app.moment.snapshot.scores.groups < GROUPS_A_STEP * STEPS
        before = app.moment.now
        now[0] += 3600.0
        assert app.moment.now == before == app.moment.snapshot.taken_at
        assert "10m of 20m" in slider_text(app)
        assert f"step {app.moment.snapshot.run.step}" in slider_text(app)
        assert STEPS // 2 - 1 <= app.moment.snapshot.run.step <= STEPS // 2


async def test_the_trajectories_are_those_that_had_ended(make_recorded: Callable[..., ListenedApp]) -> None:
    app = make_recorded()
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        await pilot.press("t")
        groups = app.screen.query_one(GroupListPane)
        await until(pilot, lambda: groups.groups)
        newest = groups.groups[0].group_id
        await pilot.press(*["minus"] * 5)
        await settled(pilot, app, share(0.5))
        outcomes = app.moment.snapshot.ledger.by_outcome
        ended = sum(outcomes.values()) - outcomes.get(Outcome.IN_FLIGHT, 0)
        assert ended < newest
        await until(pilot, lambda: groups.groups and groups.groups[0].group_id == ended)
        assert app.screen.query_one(TimeSlider).display


async def test_a_click_on_the_track_seeks(make_recorded: Callable[..., ListenedApp]) -> None:
    app = make_recorded(mouse=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        await pilot.click(TimeSlider, offset=(1, 0))
        await settled(pilot, app, lambda moment: moment.snapshot.ledger.started == 0)


async def test_the_keys_can_be_given_otherwise_and_stand_in_the_help(make_recorded: Callable[..., ListenedApp]) -> None:
    app = make_recorded(user_files=UserFiles(keymap={"time.event_back": "f5"}))
    async with app.run_test(size=(120, 60)) as pilot:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        newest = app.moment.snapshot.seq
        await pilot.press("f5")
        await settled(pilot, app, lambda moment: moment.snapshot.seq == newest - 1)
        await pilot.press("question_mark")
        text = "\n".join(line.plain for line in app.screen.query_one("#help").draw(150, 70))
        assert "f5" in text
        for command in commands([Scope.TIME]):
            assert command.help[:30] in text


async def test_a_live_run_has_no_slider_and_says_so(make_app: MakeApp) -> None:
    app = make_app(source=RecordedSource())
    async with app.run_test() as pilot:
        await pilot.press("left_square_bracket", "0")
        await until(pilot, lambda: len(app.said) == 2)
        assert "live" in app.said[0]
        assert not app.screen.query_one(TimeSlider).display


@pytest.mark.parametrize(("share", "drawn"), [(0.0, "●────"), (0.5, "━━●──"), (1.0, "━━━━●")])
def test_the_knob_stands_where_one_is(share: float, drawn: str) -> None:
    assert track(share, 5).plain == drawn


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
def test_the_dashboard_of_a_past_moment(
    snap_compare: Callable[..., bool],
    make_recorded: Callable[..., ListenedApp],
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # How large the file is depends on how often it was committed.
    record = RecordSection(level="all", size=492_000, size_limit=20_000_000_000)
    monkeypatch.setattr(RunFileReader, "record", lambda self: record)
    app = make_recorded()

    async def back(pilot: Pilot[Any]) -> None:
        await settled(pilot, app, lambda moment: moment.snapshot.run.step == STEPS)
        await pilot.press(*["minus"] * 4)
        await settled(pilot, app, share(0.6))
        await pilot.pause()

    run_before: Callable[[Pilot[Any]], Awaitable[None]] = back
    assert snap_compare(app, terminal_size=size, run_before=run_before)
