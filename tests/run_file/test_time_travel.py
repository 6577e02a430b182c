"""Any moment of a recorded run: found by event, step and time, and shown as it was then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.ledger import Rollout
from atropos_tui.ledger.events import ServerHealth, TrainerStatus
from atropos_tui.ledger.outcomes import Outcome, RunState
from atropos_tui.monitor.recorded import moments
from atropos_tui.monitor.recorded.jsonl_run import JsonlRun
from atropos_tui.monitor.recorded.moments import Moments
from atropos_tui.monitor.recorded.recorded_run import RecordedRun
from atropos_tui.monitor.recorded.timeline import Stride, Timeline, neighbour
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import RunSnapshot
from tests.run_file.hand_clock import BEGIN, HandClock
from tests.run_file.recorded_run import RecordedRun as Recording

LIMIT = 60.0


def no_pieces(ids: object) -> list[str]:
    return []


def delivered(snapshot: RunSnapshot) -> int:
    return snapshot.ledger.by_outcome.get(Outcome.DELIVERED, 0)


class Watched:
    """What the screen does with a recorded run: it follows the stream and moves."""

    def __init__(self, run: RecordedRun | JsonlRun, snapshots: AsyncIterator[RunSnapshot]) -> None:
        self.run = run
        self._snapshots = snapshots

    async def exact(self) -> RunSnapshot:
        """The next snapshot that is no stand-in."""
        async with asyncio.timeout(LIMIT):
            while True:
                snapshot = await anext(self._snapshots)
                if self.run.timeline.exact:
                    return snapshot

    async def moved(self, stride: Stride, by: int) -> RunSnapshot:
        await self.run.move(stride, by)
        return await self.exact()


@asynccontextmanager
async def watched(run: RecordedRun | JsonlRun) -> AsyncIterator[Watched]:
    stream = run.stream(hz=30.0)
    try:
        yield Watched(run, stream)
    finally:
        await stream.aclose()  # type: ignore[attr-defined]  # streams are generators
        await run.close()


@contextmanager
def recording(path: Path) -> Iterator[tuple[Recording, HandClock]]:
    clock = HandClock()
    made = Recording(path, clock=clock)
    yield made, clock
    made.close()


@pytest.fixture
def four_minutes(tmp_path: Path) -> Path:
    """A delivered group each minute, with the trainer a step further each time; recorded and left."""
    path = tmp_path / "run.db"
    with recording(path) as (run, clock):
        for step in range(1, 5):
            run.delivered(score=float(step))
            run.stream.publish(
                TrainerStatus, step=step, batch_size=8, queue_size=0, queue_limit=-1, self_queue_size=0,
                env_weight=1.0, unallocated_fraction=0.0,
            )  # fmt: skip
            run.write()
            clock.go_on(60.0)
    return path


async def test_by_event_each_press_takes_back_one_and_brings_it_again(four_minutes: Path) -> None:
    reader = RunFileReader(four_minutes)
    newest = reader.extent().seq
    async with watched(RecordedRun(four_minutes, no_pieces)) as seen:
        assert (await seen.exact()).seq == newest
        for back in range(1, newest):
            snapshot = await seen.moved(Stride.EVENT, -1)
            assert snapshot.seq == newest - back
        assert seen.run.timeline.share == pytest.approx(0.0, abs=0.01)
        for seq in range(2, newest + 1):
            assert (await seen.moved(Stride.EVENT, 1)).seq == seq
        assert seen.run.timeline.at is not None
    reader.close()


async def test_by_step_the_moment_is_that_in_which_the_trainer_got_there(four_minutes: Path) -> None:
    async with watched(RecordedRun(four_minutes, no_pieces)) as seen:
        assert (await seen.exact()).run.step == 4
        for step in (4, 3, 2, 1):
            snapshot = await seen.moved(Stride.TRAINER_STEP, -1)
            assert (snapshot.run.step, delivered(snapshot)) == (step, step)
        assert (await seen.moved(Stride.TRAINER_STEP, 2)).run.step == 3


async def test_by_minute_groups_are_those_that_had_ended(four_minutes: Path) -> None:
    async with watched(RecordedRun(four_minutes, no_pieces)) as seen:
        await seen.exact()
        for groups in (3, 2, 1):
            snapshot = await seen.moved(Stride.MINUTE, -1)
            assert delivered(snapshot) == groups
            page = await seen.run.groups()
            assert ([row.group_id for row in page.rows], page.total) == (list(range(groups, 0, -1)), groups)
            assert (await seen.run.groups(search="question")).total == groups
            assert snapshot.taken_at == seen.run.timeline.position
        snapshot = await seen.moved(Stride.MINUTE, -1)
        assert seen.run.timeline.at == seen.run.timeline.begin
        assert (delivered(snapshot), snapshot.run.environment, snapshot.run.pid) == (0, "Env", 7)
        assert snapshot.run.started_at == pytest.approx(BEGIN, abs=1)
        seen.run.seek(None)
        assert delivered(await seen.exact()) == 4


async def test_a_moment_of_a_run_that_died_is_not_yet_crashed(four_minutes: Path) -> None:
    async with watched(RecordedRun(four_minutes, no_pieces)) as seen:
        assert (await seen.exact()).run.state is RunState.CRASHED
        assert (await seen.moved(Stride.TENTH, -1)).run.state is RunState.RUNNING
        assert seen.run.timeline.stands_still
        assert seen.run.timeline.share == pytest.approx(0.9)
        assert (await seen.moved(Stride.TENTH, 1)).run.state is RunState.CRASHED


async def test_a_far_moment_is_told_by_what_was_kept_before_it_and_then_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "STRETCH", 10)
    path = tmp_path / "run.db"
    with recording(path) as (run, clock):
        for group in range(1, 41):
            run.delivered()
            if group % 10 == 0:
                run.write()
                run.recorder.note_snapshot(run.view.snapshot())
            clock.go_on(1.0)
    async with watched(RecordedRun(path, no_pieces)) as seen:
        await seen.exact()
        seen.run.seek(BEGIN + 25.5)
        async with asyncio.timeout(LIMIT):
            stand_in = await anext(seen._snapshots)
        assert (delivered(stand_in), seen.run.timeline.exact) == (20, False)
        assert delivered(await seen.exact()) == 26


def test_folding_goes_on_from_where_models_were_laid_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.db"
    with recording(path) as (run, clock):
        for _ in range(60):
            run.delivered()
            run.failed()
            clock.go_on(5.0)
    reader = RunFileReader(path)
    ends = [BEGIN + seconds for seconds in (290.0, 40.0, 200.0, 120.0)]
    straight = [Moments(reader).folded(end, most=10_000) for end in ends]
    monkeypatch.setattr(moments, "EVENTS_BETWEEN_CHECKPOINTS", 50)
    laid_by = Moments(reader)
    read: list[int] = []
    monkeypatch.setattr(
        reader, "events", lambda first, until=None, of=reader.events: read.append(first) or of(first, until)
    )
    for end, expected in zip(ends, straight, strict=True):
        while (snapshot := laid_by.folded(end, most=25)) is None:
            pass
        assert snapshot is not None
        assert expected is not None
        for section in ("ledger", "scores", "skipped", "sends", "queue", "run", "logs"):
            assert getattr(snapshot, section) == getattr(expected, section), section
    assert read.count(1) == 1  # the beginning was folded once
    reader.close()


def test_what_contents_told_is_that_of_the_snapshot_that_was_kept_before_and_says_how_old_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with recording(path) as (run, clock):
        for group in range(1, 41):
            run.delivered(tokens=400, text="in circles")
            run.write()
            clock.go_on(1.0)
            if group in (10, 30):
                run.recorder.note_snapshot(run.view.snapshot())
                run.write()
    reader = RunFileReader(path)
    seen = Moments(reader)
    early = seen.folded(BEGIN + 5.5, most=1_000)
    assert early is not None
    assert (early.scores.groups, early.scores.parts, early.scores.kept_at) == (6, (), -1.0)
    for at, groups, kept_groups in ((25.0, 25, 10), (38.0, 38, 30)):
        moment = seen.folded(BEGIN + at, most=1_000)
        assert moment is not None
        (part,) = moment.scores.parts
        assert moment.scores.groups == pytest.approx(groups, abs=1)
        assert (part.name, part.groups, part.mean) == ("format", kept_groups, 0.5)
        assert moment.scores.looks.rollouts == 2 * kept_groups
        assert moment.scores.kept_at == pytest.approx(BEGIN + kept_groups, abs=0.5)
    end = seen.newest()
    assert (end.scores.parts[0].groups, end.scores.kept_at) == (40, 0.0)
    again = seen.folded(None, most=1_000)
    assert again is not None
    assert (again.scores.parts, again.scores.looks) == (end.scores.parts, end.scores.looks)
    reader.close()


def test_alerts_about_contents_hold_in_a_recorded_moment_since_when_they_did(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    loop = [7, 8, 9, 10] * 50
    circling = tuple(Rollout(score=float(n), tokens=loop, masks=loop, logprobs=[-0.5] * 200) for n in range(2))
    with recording(path) as (run, clock):
        for _ in range(40):
            run.end(run.started(), circling)
            run.write()
            clock.go_on(1.0)
            run.view.snapshot()
        run.recorder.note_snapshot(run.view.snapshot())
        run.write()
        live = {alert.name: alert.since_at for alert in run.view.snapshot().run.alerts}
        clock.go_on(20.0)
        run.delivered()
        run.write()
    reader = RunFileReader(path)
    moment = Moments(reader).folded(BEGIN + 50.0, most=1_000)
    assert moment is not None
    assert {alert.name: alert.since_at for alert in moment.run.alerts}["repetition"] == live["repetition"]
    reader.close()


def test_each_life_of_a_run_has_its_own_moments(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    clock = HandClock()
    for groups in (3, 2):
        run = Recording(path, clock=clock)
        for _ in range(groups):
            run.delivered()
        run.close()
        clock.go_on(100.0)
    reader = RunFileReader(path)
    seen = Moments(reader)
    for wall, groups in ((BEGIN + 50, 3), (BEGIN + 150, 2), (BEGIN + 50, 3), (BEGIN - 1, 0)):
        snapshot = seen.folded(wall, most=1_000)
        assert snapshot is not None
        assert delivered(snapshot) == groups
    reader.close()


def test_each_life_of_a_run_numbers_its_servers_itself(tmp_path: Path) -> None:
    """A second server of the configuration takes the number that a judge had in the life before."""
    path = tmp_path / "run.db"
    clock = HandClock()
    for urls in (["policy", "judge"], ["policy", "another"]):
        run = Recording(path, clock=clock)
        for number, url in enumerate(urls):
            run.stream.publish(
                ServerHealth, server=number, url=url, server_type="openai", model_name="m", healthy=True, limit=8,
                eval_limit=1, auxiliary=url == "judge",
            )  # fmt: skip
            clock.go_on(10.0)
        run.close()
        clock.go_on(80.0)
    reader = RunFileReader(path)
    seen = Moments(reader)
    for after, urls in ((5, ["policy"]), (50, ["policy", "judge"]), (105, ["policy"]), (150, ["policy", "another"])):
        snapshot = seen.folded(BEGIN + after, most=1_000)
        assert snapshot is not None
        rows = snapshot.inference.servers
        assert [(row.url, row.auxiliary) for row in rows] == [(url, url == "judge") for url in urls]
    reader.close()


async def test_lines_of_a_jsonl_are_moments_too(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    lines = [json.dumps({"tokens": [[1], [2]], "masks": [[1], [2]], "scores": [0.0, float(n)]}) for n in range(10)]
    path.write_text("\n".join(lines) + "\n")
    async with watched(JsonlRun(path, no_pieces)) as seen:
        assert delivered(await seen.exact()) == 10
        snapshot = await seen.moved(Stride.EVENT, -3)
        assert (delivered(snapshot), snapshot.run.state, snapshot.scores.high) == (7, RunState.RUNNING, 6.0)
        assert [row.group_id for row in (await seen.run.groups(limit=2)).rows] == [7, 6]
        assert delivered(await seen.moved(Stride.TENTH, -5)) == 2
        assert delivered(await seen.moved(Stride.EVENT, 1)) == 3
        with pytest.raises(UsageError, match="no minutes"):
            await seen.run.move(Stride.MINUTE, 1)
        await seen.run.move(Stride.EVENT, 100)
        assert (await seen.exact()).run.state is RunState.FINISHED


async def test_lines_of_a_jsonl_tell_parts_of_scores_and_their_tokens_at_any_line(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    loop = [7, 8, 9, 10] * 20

    def line(number: int) -> str:
        tokens = loop if number == 6 else list(range(80))
        parts = {} if number == 1 else {"score_parts": [{"format": float(number)}, {"format": None}]}
        return json.dumps({"tokens": [tokens] * 2, "masks": [tokens] * 2, "scores": [0.0, 1.0], **parts})

    path.write_text("\n".join(map(line, range(1, 9))) + "\n")
    async with watched(JsonlRun(path, no_pieces)) as seen:
        for at, told, mean, circling in (
            (8, 7, 5.0, 2),
            (7, 6, 4.5, 2),
            (5, 4, 3.5, 0),
            (6, 5, 4.0, 2),
            (1, 0, 0.0, 0),
        ):
            seen.run.seek(float(at))
            snapshot = await seen.exact()
            while delivered(snapshot) != at:
                snapshot = await seen.exact()
            parts = {part.name: (part.groups, part.mean) for part in snapshot.scores.parts}
            assert parts == ({"format": (told, mean)} if told else {})
            looks = snapshot.scores.looks
            assert (looks.rollouts, looks.repetitive) == (2 * at, circling)
            assert snapshot.scores.kept_at == 0.0


@pytest.mark.parametrize(
    ("position", "by", "found"),
    [(5.0, 1, 10.0), (10.0, 1, 20.0), (10.0, -1, 10.0), (15.0, -1, 10.0), (30.0, 1, None), (35.0, -1, 30.0)],
)
def test_the_neighbour_of_a_position(position: float, by: int, found: float | None) -> None:
    assert neighbour([10.0, 20.0, 30.0], position, by) == found


def test_a_timeline_places_and_clamps() -> None:
    line = Timeline(100.0, 200.0)
    assert (line.share, line.placed(0.25), line.placed(1.0)) == (1.0, 125.0, None)
    assert (line.moved(Stride.TENTH, -3), line.moved(Stride.MINUTE, -4), line.moved(Stride.MINUTE, 1)) == (
        170,
        100,
        None,
    )
    assert Timeline(5.0, 5.0).share == 1.0
