"""Runs found here and runs given by URL, followed side by side: real sockets, real HTTP, and one that is silent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import RunStarted, StateChanged, TrainerStatus
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor import fleet as fleet_module
from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.discovery import WorkerFile, write_worker_file
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.monitor_thread import MonitorThread
from atropos_tui.monitor.remote_access import open_to_others
from atropos_tui.monitor.run_view import RunView
from atropos_tui.monitor.snapshot import RunSection
from tests.monitor.test_control_api import RecordedCommands

LIMIT = 60.0


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "SCAN_SECONDS", 0.1)
    monkeypatch.setattr(fleet_module, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(fleet_module, "ANSWER_SECONDS", 1.0)


class RunningRun:
    """A monitor thread in a run directory, with the worker's file beside it."""

    def __init__(self, root: Path, name: str, *, listen: bool = False, read_only: bool = False) -> None:
        self.run_dir = root / name
        self.run_dir.mkdir(parents=True)
        self.commands = RecordedCommands()
        view = RunView(MemoryGroupStore())
        self.stream = EventStream(view.collector)
        socket_path = self.run_dir / "control.sock"
        self.monitor = MonitorThread(view, self.commands, socket_path, decode=lambda ids: [], read_only=read_only)
        self.remote = open_to_others("127.0.0.1:0", self.run_dir) if listen else None
        self.monitor.start(self.remote)
        self.stream.publish(
            RunStarted, run_id=name, environment="Env", file="env.py", pid=1, group_size=2, total_steps=10,
            max_token_length=64, tokenizer_name="pocket",
        )  # fmt: skip
        self.stream.publish(StateChanged, state=RunState.RUNNING)
        self.file = worker_file(name, str(socket_path))
        write_worker_file(self.run_dir, self.file)

    def step(self, step: int) -> None:
        self.stream.publish(
            TrainerStatus, step=step, batch_size=4, queue_size=0, queue_limit=8, self_queue_size=0, env_weight=1.0,
            unallocated_fraction=1.0,
        )  # fmt: skip

    def end(self, why: str = "all steps done") -> None:
        """As a worker that ends in order: the reason first, then the socket goes."""
        ended = {"ended_at": time.time(), "end_state": str(RunState.FINISHED), "why": why}
        write_worker_file(self.run_dir, replace(self.file, **ended))
        self.monitor.close()


def worker_file(name: str, socket_path: str, host: str = "") -> WorkerFile:
    return WorkerFile(
        run_id=name, pid=os.getpid(), started_at=time.time(), socket=socket_path, environment="Env", file="env.py",
        host=host,
    )  # fmt: skip


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[Callable[..., RunningRun]]:
    runs: list[RunningRun] = []

    def make(name: str, root: str = "runs", **options: bool) -> RunningRun:
        runs.append(RunningRun(tmp_path / root, name, **options))
        return runs[-1]

    yield make
    for run in runs:
        run.monitor.close()


@contextlib.asynccontextmanager
async def watched(fleet: Fleet) -> AsyncIterator[Callable[[Callable[[dict[str, FleetRun]], bool]], object]]:
    """The fleet while it watches; the value waits until its runs, by name, are as wanted."""
    news = asyncio.Event()
    task = asyncio.create_task(fleet.watch(news.set))

    async def until(condition: Callable[[dict[str, FleetRun]], bool]) -> dict[str, FleetRun]:
        async with asyncio.timeout(LIMIT):
            while not condition(runs := {run.name: run for run in fleet.runs}):
                assert not task.done(), task
                news.clear()
                await news.wait()
        return runs

    try:
        yield until
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_each_run_found_here_is_a_row_with_the_numbers_of_its_worker(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    first, _ = make_run("first"), make_run("second")
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        runs = await until(lambda runs: len(runs) == 2 and all(run.answers for run in runs.values()))
        assert {run.summary.environment for run in runs.values()} == {"Env"}
        first.step(7)
        runs = await until(lambda runs: runs["first"].summary.step == 7)
        assert runs["second"].summary.step == 0
        assert runs["first"].summary.state is RunState.RUNNING


async def test_of_many_runs_that_ended_the_newest_are_read_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "MOST_ENDED", 2)
    for number in range(5):
        run_dir = tmp_path / "runs" / f"run-{number}"
        run_dir.mkdir(parents=True)
        ended = WorkerFile(
            run_id=run_dir.name, pid=1, started_at=1.8e9 + number, socket=str(run_dir / "control.sock"),
            environment="Env", file="env.py", ended_at=1.8e9 + 90, end_state="finished", why="done",
        )  # fmt: skip
        write_worker_file(run_dir, ended)
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        runs = await until(lambda runs: len(runs) == 2)
        assert (set(runs), fleet.left_out) == ({"run-3", "run-4"}, 3)


async def test_runs_that_are_kept_elsewhere_are_followed_too(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    make_run("served")
    make_run("shown", root="demo")
    async with watched(Fleet(tmp_path / "runs", also=tmp_path / "demo")) as until:
        runs = await until(lambda runs: len(runs) == 2 and all(run.answers for run in runs.values()))
        assert set(runs) == {"served", "shown"}


async def test_a_run_that_takes_connections_and_never_answers_is_silent_and_delays_no_other(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    make_run("quick")
    stuck = tmp_path / "runs" / "stuck"
    stuck.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stuck / "control.sock"))
        listener.listen(16)
        write_worker_file(stuck, worker_file("stuck", str(stuck / "control.sock")))
        fleet = Fleet(tmp_path / "runs")
        async with watched(fleet) as until:
            runs = await until(lambda runs: len(runs) == 2 and runs["quick"].answers)
            assert runs["stuck"].presence in (Presence.LOOKING, Presence.SILENT)
            runs = await until(lambda runs: runs["stuck"].presence is Presence.SILENT and runs["quick"].answers)
            assert "no answer within 1 s" in runs["stuck"].why


async def test_a_run_given_by_url_is_asked_with_its_token(tmp_path: Path, make_run: Callable[..., RunningRun]) -> None:
    far = make_run("far", root="elsewhere", listen=True)
    assert far.remote is not None
    fleet = Fleet(tmp_path / "none", {far.remote.url: far.remote.token, "http://127.0.0.1:9": ""})
    async with watched(fleet) as until:
        runs = await until(lambda runs: "far" in runs and "http://127.0.0.1:9" in runs)
        assert runs["far"].answers
        assert fleet.address(runs["far"]) == (far.remote.url, far.remote.token)
        runs = await until(lambda runs: runs["http://127.0.0.1:9"].presence is Presence.SILENT)


async def test_a_wrong_token_is_told_in_the_words_of_the_worker(
    make_run: Callable[..., RunningRun], tmp_path: Path
) -> None:
    far = make_run("far", root="elsewhere", listen=True)
    assert far.remote is not None
    fleet = Fleet(tmp_path / "none", {far.remote.url: "wrong"})
    async with watched(fleet) as until:
        runs = await until(lambda runs: runs[far.remote.url].presence is Presence.SILENT)  # type: ignore[union-attr]
        assert "this run wants its token" in runs[far.remote.url].why


async def test_commands_reach_the_runs_that_are_named_and_refusals_come_back_by_run(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    first, second, third = make_run("first"), make_run("second", read_only=True), make_run("third")
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        runs = await until(lambda runs: len(runs) == 3 and all(run.answers for run in runs.values()))
        faults = await fleet.command([runs["first"].key, runs["second"].key], "pause")
    assert faults == {str(second.run_dir): "the worker refused: this run is read-only"}
    assert (first.commands.given, second.commands.given, third.commands.given) == (["pause"], [], [])


async def test_a_run_that_ends_stays_with_its_reason_and_one_that_comes_is_found(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    first = make_run("first")
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        await until(lambda runs: "first" in runs and runs["first"].answers)
        await asyncio.to_thread(first.end)
        runs = await until(lambda runs: runs["first"].presence is Presence.ENDED)
        assert (runs["first"].why, runs["first"].summary.state) == ("all steps done", RunState.FINISHED)
        assert runs["first"].summary.ended_at
        make_run("later")
        await until(lambda runs: "later" in runs and runs["later"].answers)
        assert [run.name for run in fleet.runs] == ["later", "first"]


async def test_a_worker_that_is_gone_without_a_word_is_a_crash_and_shows_the_end_of_its_log(tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "dead"
    run_dir.mkdir(parents=True)
    write_worker_file(run_dir, worker_file("dead", str(run_dir / "control.sock")))
    (run_dir / "worker.log").write_text("one\nCUDA error: out of memory\n")
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        runs = await until(lambda runs: "dead" in runs)
    assert runs["dead"].summary.state is RunState.CRASHED
    assert runs["dead"].why == "gone without a word; its log ends with: CUDA error: out of memory"
    assert not runs["dead"].answers


class NotedDeaths:
    """Stands for what tells the operator; keeps of each death the run's directory and the words."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, run_dir: Path) -> DeathNotice:
        told = self.told

        class Noted(DeathNotice):
            async def tell(self, run: RunSection, worker: WorkerFile) -> None:
                assert worker.run_id == run.run_id
                told.append((run_dir.name, run.why_ended))

        return Noted(run_dir)


async def test_a_worker_that_dies_while_it_is_watched_is_told_of_and_no_other(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    dead = tmp_path / "runs" / "dead"
    dead.mkdir(parents=True)
    write_worker_file(dead, worker_file("dead", "/nowhere/control.sock"))
    dies, ends = make_run("dies"), make_run("ends")
    noted = NotedDeaths()
    fleet = Fleet(tmp_path / "runs", notice=noted)
    async with watched(fleet) as until:
        await until(lambda runs: len(runs) == 3 and runs["dies"].answers and runs["ends"].answers)
        await asyncio.to_thread(ends.end)
        await asyncio.to_thread(dies.monitor.close)
        await until(lambda runs: all(run.presence is Presence.ENDED for run in runs.values()))
        await fleet.close()
    assert noted.told == [("dies", "the worker is gone without a word")]


async def test_a_run_of_another_host_in_a_shared_directory_is_not_asked(tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "there"
    run_dir.mkdir(parents=True)
    write_worker_file(run_dir, worker_file("there", "/nowhere/control.sock", host="node4"))
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        runs = await until(lambda runs: "there" in runs)
    assert runs["there"].presence is Presence.ELSEWHERE
    assert "node4" in runs["there"].why


async def test_a_directory_that_is_removed_leaves_the_fleet(tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "dead"
    run_dir.mkdir(parents=True)
    write_worker_file(run_dir, worker_file("dead", "/nowhere/control.sock"))
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        await until(lambda runs: "dead" in runs)
        (run_dir / "worker.json").unlink()
        run_dir.rmdir()
        async with asyncio.timeout(LIMIT):
            while fleet.runs:  # noqa: ASYNC110  nobody is told of what is gone
                await asyncio.sleep(0.01)


async def test_commanding_a_run_that_went_away_says_that_it_does_not_answer(
    tmp_path: Path, make_run: Callable[..., RunningRun]
) -> None:
    first = make_run("first")
    fleet = Fleet(tmp_path / "runs")
    async with watched(fleet) as until:
        await until(lambda runs: "first" in runs and runs["first"].answers)
    await asyncio.to_thread(first.end)
    (fault,) = (await fleet.command([str(first.run_dir)], "resume")).values()
    assert "does not answer" in fault
