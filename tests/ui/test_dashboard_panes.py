"""What the header and the panes say of runs in which something is slow, lost or very large."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atropos_tui.ledger.outcomes import Outcome, ThrottleReason
from atropos_tui.monitor.snapshot import (
    Alert,
    InferenceSection,
    LedgerSection,
    QueueSection,
    ReasonCount,
    RecordSection,
    RunSnapshot,
    ScoresSection,
    SkippedSection,
)
from atropos_tui.ui.header import Header
from atropos_tui.ui.panes.inference import InferencePane
from atropos_tui.ui.panes.queue import QueuePane
from atropos_tui.ui.panes.scores import ScoresPane
from atropos_tui.ui.panes.sends import SendsPane
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import MakeApp
from tests.ui.recorded import NOW, running
from tests.ui.screen_steps import SIZE, known, painted


def flowing() -> RunSnapshot:
    """A run in full swing that has nothing to complain of."""
    base = running()
    return replace(base, run=replace(base.run, headline="", alerts=()))


async def shown(
    make_app: MakeApp, snapshot: RunSnapshot, canvas: type[Canvas], *keys: str, size: tuple[int, int] = SIZE
) -> str:
    async with make_app(snapshot).run_test(size=size) as pilot:
        await known(pilot)
        await pilot.press(*keys)
        await pilot.pause()
        return painted(pilot.app.screen.query_one(canvas))


class TestHeader:
    async def test_while_groups_flow_it_says_when_the_trainer_sets_the_pace(self, make_app: MakeApp) -> None:
        base = flowing()
        slow = replace(
            base,
            queue=replace(base.queue, held_by_trainer=0.83, throttle=ThrottleReason.OFF_POLICY_LIMIT),
            sends=replace(base.sends, seconds_per_step=4.1),
        )
        header = await shown(make_app, slow, Header)
        assert "groups flow · held by the trainer 83% of the last minute, a step takes 4.1s" in header
        assert "held by the trainer" not in await shown(make_app, base, Header)

    async def test_groups_do_not_flow_when_none_reaches_the_trainer(self, make_app: MakeApp) -> None:
        base = flowing()
        none = SkippedSection(
            total=28,
            last_minute=28,
            ended_last_minute=28,
            reasons=(ReasonCount(Outcome.SKIPPED, "malformed", 28, 28),),
        )
        header = await shown(make_app, replace(base, skipped=none), Header)
        assert "28 groups ended in the last minute, and none reached the trainer" in header
        assert "groups flow" not in header

    async def test_a_severe_alert_comes_before_those_that_are_not(self, make_app: MakeApp) -> None:
        base = flowing()
        alerts = (
            Alert("zero_advantage", "12 in a row", NOW - 9),
            Alert("queue_full", "no batch", NOW - 9, severe=True),
        )
        header = await shown(make_app, replace(base, run=replace(base.run, alerts=alerts)), Header)
        assert "! no batch" in header

    async def test_a_run_that_never_made_progress_says_how_long_it_waits_for_it(self, make_app: MakeApp) -> None:
        base = flowing()
        waiting = replace(base.run, headline="waiting for an item", last_progress_at=0.0, started_at=NOW - 42)
        assert "waiting for an item  for 42s" in await shown(make_app, replace(base, run=waiting), Header)


class TestQueue:
    async def test_of_very_many_groups_in_flight_the_rest_is_counted_whole(self, make_app: MakeApp) -> None:
        base = flowing()
        many = replace(base, queue=replace(base.queue, in_flight=300, limit=300))
        room = await shown(make_app, many, QueuePane)
        rows = sum("0/8" in line or "/8 " in line for line in room.splitlines())
        assert f"… {300 - rows} more" in room
        assert f"of the {len(base.queue.rows)} longest in flight" in await shown(make_app, many, QueuePane, "z")

    async def test_a_limit_below_what_is_in_flight_is_not_shown_as_its_denominator(self, make_app: MakeApp) -> None:
        base = flowing()
        assert "32/32 in flight" in await shown(make_app, base, QueuePane)
        fallen = replace(base, queue=replace(base.queue, limit=4))
        assert " 32 in flight" in await shown(make_app, fallen, QueuePane)

    async def test_an_empty_queue_tells_in_full_what_is_waited_for(self, make_app: MakeApp) -> None:
        base = flowing()
        why = "backing off: get_next_item failed, asked again after 6.4 s: FileNotFoundError: /data/train-00017.parquet"
        empty = replace(base, run=replace(base.run, headline=why), queue=QueueSection(limit=16))
        pane = await shown(make_app, empty, QueuePane)
        assert "nothing is in flight" in pane
        assert "/data/train-00017.parquet" in pane

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            (ThrottleReason.MAX_NUM_WORKERS, "‖ held by max num workers"),
            (ThrottleReason.NO_ITEMS, "‖ no items"),
            (ThrottleReason.BACKING_OFF, "‖ backing off"),
        ],
    )
    async def test_only_a_limit_holds(self, make_app: MakeApp, reason: ThrottleReason, said: str) -> None:
        base = flowing()
        held = replace(base, queue=replace(base.queue, throttle=reason, throttle_detail=""))
        assert said in await shown(make_app, held, QueuePane)


class TestScores:
    async def test_after_the_last_group_nothing_is_drawn(self, make_app: MakeApp) -> None:
        base = flowing()
        later = base.scores.trend[-1].at + 743
        pane = await shown(make_app, replace(base, taken_at=later), ScoresPane)
        chart = pane.splitlines()[2:6]
        middle = len(chart[0]) // 2 + 3
        assert any(cell not in " ⠀│" for line in chart for cell in line[6:middle])
        assert not any(cell not in " ⠀│" for line in chart for cell in line[middle + 4 :])

    async def test_a_short_window_of_a_long_run_has_its_own_points(self, make_app: MakeApp) -> None:
        base = flowing()
        coarse = tuple(replace(point, at=NOW - 3_600 * (9 - i)) for i, point in enumerate(base.scores.trend[:10]))
        recent = tuple(replace(base.scores.trend[0], at=NOW - 4 * (30 - i), groups=1) for i in range(30))
        scores = replace(base.scores, trend=coarse, recent=recent)
        pane = await shown(make_app, replace(base, scores=scores), ScoresPane, "2", "z", "w", "w", "w")
        assert "last 2 minutes" in pane
        assert "30 groups" in pane

    async def test_means_of_groups_have_a_scale_of_their_own(self, make_app: MakeApp) -> None:
        base = flowing()
        edges = tuple(-50.0 + 5 * i for i in range(21))
        trend = tuple(replace(point, mean=-3.0, low=-4.0, high=-2.0) for point in base.scores.trend)
        scores = replace(base.scores, edges=edges, spikes=(), trend=trend)
        lines = (await shown(make_app, replace(base, scores=scores), ScoresPane)).splitlines()
        assert lines[2].startswith("│ 0.00 ")
        assert any(line.startswith("│ -5.0 ") for line in lines[3:9])

    async def test_groups_that_ended_without_scores_are_counted_where_scores_would_be(self, make_app: MakeApp) -> None:
        base = flowing()
        pane = await shown(make_app, replace(base, scores=ScoresSection()), ScoresPane)
        assert f"{base.skipped.total} groups ended without any: 3 shows why" in pane
        fresh = replace(base, scores=ScoresSection(), skipped=SkippedSection(), ledger=LedgerSection())
        assert "shows why" not in await shown(make_app, fresh, ScoresPane)


@pytest.mark.parametrize("keys", [(), ("4", "z")], ids=["small", "zoomed"])
async def test_the_trainers_pace_stands_beside_its_step(make_app: MakeApp, keys: tuple[str, ...]) -> None:
    base = flowing()
    slow = replace(base, sends=replace(base.sends, trainer_step=231, seconds_per_step=4.1))
    assert "4.1s each" in await shown(make_app, slow, SendsPane, *keys)


async def test_an_empty_outbox_of_a_run_that_sent_nothing_does_not_say_that_all_was_sent(make_app: MakeApp) -> None:
    base = flowing()
    sends = replace(base.sends, outbox=0, delivered=0, oldest_in_outbox_at=0.0)
    assert "0 · nothing was sent yet" in await shown(make_app, replace(base, sends=sends), SendsPane)
    sends = replace(sends, delivered=3)
    assert "0 · everything is with the trainer" in await shown(make_app, replace(base, sends=sends), SendsPane)


async def test_what_the_small_pane_tells_of_the_record_is_in_the_large_one_too(make_app: MakeApp) -> None:
    recorded = replace(
        flowing(), record=RecordSection(level="all", path="run.db", size=475_000, size_limit=21_000_000_000)
    )
    for keys in ((), ("4", "z")):
        assert "475 kB of 21 GB" in await shown(make_app, recorded, SendsPane, *keys)


async def test_the_queue_says_how_much_of_it_is_this_runs_where_others_share_it(make_app: MakeApp) -> None:
    base = flowing()
    assert "12/36 groups · 9 of this run" in await shown(make_app, base, SendsPane)
    alone = replace(base, sends=replace(base.sends, trainer_queue_own=12))
    assert "of this run" not in await shown(make_app, alone, SendsPane)


async def test_the_numbers_of_a_server_are_named_where_there_is_room(make_app: MakeApp) -> None:
    base = flowing()
    one = replace(base, inference=InferenceSection(base.inference.servers[:1]))
    assert " calls · p50 " in await shown(make_app, one, InferencePane)


async def test_a_server_that_answered_nothing_in_the_last_minute_has_no_latency(make_app: MakeApp) -> None:
    base = flowing()
    idle = replace(base.inference.servers[0], latency_p50=0.0, latency_p95=0.0, tokens_per_second=0.0)
    section = replace(base, inference=InferenceSection((idle,)))
    assert " · p50 – · 0 tok/s" in await shown(make_app, section, InferencePane)
    assert "0ms" not in await shown(make_app, section, InferencePane, "5", "z")


async def test_a_server_whose_calls_fail_says_so_in_its_line(make_app: MakeApp) -> None:
    base = flowing()
    server = replace(base.inference.servers[0], healthy=None, requests=1_500, errors=15, last_error_at=NOW - 3)
    line = await shown(make_app, replace(base, inference=InferenceSection((server,))), InferencePane)
    assert "15 of 1,500 calls failed" in line
    long_ago = replace(server, last_error_at=NOW - 300)
    assert "failed" not in await shown(make_app, replace(base, inference=InferenceSection((long_ago,))), InferencePane)
