"""All runs that an operator has: those found on this machine and those given by URL, each followed on its own.

A run that doesn't answer is known not to, and delays no other. Runs that ended are read once, from what they left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.discovery import FoundRun, find_run, list_runs
from atropos_tui.monitor.live_run import found_dead, last_log_lines
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.monitor.snapshot import RunSection, RunSnapshot
from atropos_tui.monitor.summary import RunSummary, summary_of

if TYPE_CHECKING:
    from atropos_tui.monitor.death_notice import DeathNotice

SCAN_SECONDS = 5.0
POLL_SECONDS = 2.0
# Who takes longer is shown as silent; over a slow tunnel an answer takes a second.
ANSWER_SECONDS = 5.0
# Of runs that ended, the newest; reading what hundreds left takes minutes.
MOST_ENDED = 100


class Presence(StrEnum):
    """Whether there is anybody to ask."""

    LOOKING = "looking"
    ANSWERS = "answers"
    SILENT = "silent"
    ENDED = "ended"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run. `key` is its directory or its URL; `why` says why it is silent, or how it ended.

    `summary` is the newest there is, `heard_at` when it came (monotonic seconds), so that ages go on between answers.
    """

    key: str
    name: str
    presence: Presence
    started_at: float = 0.0
    run_dir: Path | None = None
    summary: RunSummary = field(default_factory=RunSummary)
    heard_at: float = 0.0
    why: str = ""

    @property
    def answers(self) -> bool:
        """Whether it can be commanded."""
        return self.presence is Presence.ANSWERS and self.summary.state not in ENDED_STATES

    @property
    def ended(self) -> bool:
        return self.presence is Presence.ENDED or self.summary.state in ENDED_STATES


class Fleet:
    """Follows runs while `watch` goes on: those under `root` and `also`, and those at `urls`, each with its token
    or none ("").

    `notice` makes what tells the operator of a worker that dies meanwhile; None: nobody is told.
    """

    def __init__(
        self,
        root: Path | None = None,
        urls: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        notice: Callable[[Path], DeathNotice] | None = None,
        also: Path | None = None,
    ) -> None:
        self._root = root
        self._also = also
        self._notice = notice
        self._telling: set[asyncio.Task[None]] = set()
        # Of runs that do not move, so many older ones are not read.
        self.left_out = 0
        self._tokens = dict(urls or {})
        self._clock = clock
        self._runs = {url: FleetRun(url, url, Presence.LOOKING) for url in self._tokens}
        self._addresses = {url: url for url in self._tokens}
        self._changed: Callable[[], None] = lambda: None

    @property
    def runs(self) -> tuple[FleetRun, ...]:
        """Those that can be asked first, then those on other hosts, then those that ended; in each the newest first."""
        return tuple(sorted(self._runs.values(), key=_place))

    def now(self, run: FleetRun) -> float:
        """This moment on the clock of the run's worker, in Unix seconds."""
        return run.summary.taken_at + (0.0 if run.ended else self._clock() - run.heard_at)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Follow all runs until cancelled; `changed` is called after each answer."""
        self._changed = changed
        followed: dict[str, asyncio.Task[None]] = {}
        reading = asyncio.Semaphore(1)
        async with asyncio.TaskGroup() as tasks:
            for url in self._tokens:
                tasks.create_task(self._follow(url, url))
            while True:
                found = await asyncio.to_thread(self._find)
                shown = _worth_showing(found)
                self.left_out = len(found) - len(shown)
                for run in shown:
                    key = str(run.run_dir)
                    task = followed.get(key)
                    if run.alive and (task is None or task.done()):
                        followed[key] = tasks.create_task(self._follow(key, run.worker.socket, run))
                    elif not run.alive and key not in followed:
                        followed[key] = tasks.create_task(self._read_what_is_left(run, reading))
                self._forget_removed({str(run.run_dir) for run in found})
                await asyncio.sleep(SCAN_SECONDS)

    def _find(self) -> Sequence[FoundRun]:
        """Newest first. Blocks."""
        found = [*list_runs(self._root), *(list_runs(self._also) if self._also is not None else ())]
        return sorted(found, key=lambda run: run.worker.started_at, reverse=True)

    async def command(self, keys: Iterable[str], name: Literal["pause", "resume"]) -> dict[str, str]:
        """Give each of these runs the command at once. Returns by key why one did not take it."""
        wanted = [key for key in keys if key in self._addresses]
        answers = await asyncio.gather(*(self._command(key, name) for key in wanted))
        return {key: fault for key, fault in zip(wanted, answers, strict=True) if fault}

    def address(self, run: FleetRun) -> tuple[str, str]:
        """Where the run answers, and the token that it wants."""
        return self._addresses[run.key], self._tokens.get(run.key, "")

    async def _follow(self, key: str, address: str, found: FoundRun | None = None) -> None:
        """Ask again and again; of a run found here until it is gone, of others for ever."""
        self._addresses[key] = address
        known = self._runs.get(key)
        if found is not None and (known is None or known.presence is not Presence.ANSWERS):
            self._note(await asyncio.to_thread(_found, found, Presence.LOOKING))
        async with RunClient(address, self._tokens.get(key, "")) as client:
            while True:
                run = self._runs.get(key)
                if run is None:
                    return
                try:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        summary = await client.summary()
                except (AtroposError, OSError, TimeoutError) as error:
                    why = str(error) or f"no answer within {ANSWER_SECONDS:.0f} s"
                    self._note(replace(run, presence=Presence.SILENT, why=why))
                    left = await asyncio.to_thread(find_run, found.run_dir) if found is not None else None
                    if left is not None and not left.alive:
                        self._tell_of_death(run.summary, left)
                        await self._read_what_is_left(left, asyncio.Semaphore(1))
                        return
                else:
                    self._note(_heard(run, summary, self._clock()))
                await asyncio.sleep(POLL_SECONDS)

    def _tell_of_death(self, last: RunSummary, run: FoundRun) -> None:
        """Where a worker that answered before is gone without a word."""
        if self._notice is None or not run.stale or not last.taken_at or last.state in ENDED_STATES:
            return
        section = RunSection(
            run_id=last.run_id, environment=last.environment, pid=run.worker.pid, state=last.state,
            started_at=last.started_at, last_progress_at=last.last_progress_at,
        )  # fmt: skip
        dead = found_dead(RunSnapshot(taken_at=last.taken_at, run=section), run, None, time.time())
        task = asyncio.create_task(self._notice(run.run_dir).tell(dead.run, run.worker))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def close(self) -> None:
        """Waits for who is being told of a death."""
        if self._telling:
            await asyncio.wait(self._telling)

    async def _read_what_is_left(self, run: FoundRun, reading: asyncio.Semaphore) -> None:
        """What the worker's file says at once, the rest from the record."""
        presence = Presence.ELSEWHERE if run.elsewhere and not run.worker.ended_at else Presence.ENDED
        known = await asyncio.to_thread(_found, run, presence)
        self._note(known)
        async with reading:
            summary = await asyncio.to_thread(_last_summary, run, known.summary)
        self._note(replace(known, summary=summary, heard_at=self._clock()))

    async def _command(self, key: str, name: Literal["pause", "resume"]) -> str:
        async with RunClient(*self.address(self._runs[key]), via="screen") as client:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await (client.pause() if name == "pause" else client.resume())
            except (AtroposError, OSError, TimeoutError) as error:
                return str(error) or f"no answer within {ANSWER_SECONDS:.0f} s"
        return ""

    def _forget_removed(self, found: set[str]) -> None:
        for key in [key for key, run in self._runs.items() if run.run_dir is not None and key not in found]:
            del self._runs[key]

    def _note(self, run: FleetRun) -> None:
        self._runs[run.key] = run
        self._changed()


def _place(run: FleetRun) -> tuple[int, float, str]:
    kind = 2 if run.ended else 1 if run.presence is Presence.ELSEWHERE else 0
    return kind, -run.started_at, run.key


def _worth_showing(found: Sequence[FoundRun]) -> list[FoundRun]:
    """All that may move, and the newest of those that ended."""
    ended = [run for run in found if not run.alive][:MOST_ENDED]
    return [run for run in found if run.alive] + ended


def _found(run: FoundRun, presence: Presence) -> FleetRun:
    """What the worker's file tells, and of a worker that died the end of its log. Blocks."""
    worker = run.worker
    if presence is Presence.ELSEWHERE:
        why = f"it runs on {worker.host}; give its URL to see it"
    elif presence is Presence.ENDED:
        last = last_log_lines(run.run_dir, 1)
        why = worker.why or "gone without a word" + (f"; its log ends with: {last[0]}" if last else "")
    else:
        why = ""
    state = RunState(worker.end_state) if worker.end_state in set(RunState) else RunState.CRASHED
    summary = RunSummary(
        run_id=worker.run_id,
        environment=worker.environment,
        state=state if presence is Presence.ENDED else RunState.STARTING,
        started_at=worker.started_at,
        ended_at=worker.ended_at,
    )
    return FleetRun(str(run.run_dir), run.run_dir.name, presence, worker.started_at, run.run_dir, summary, 0.0, why)


def _heard(run: FleetRun, summary: RunSummary, now: float) -> FleetRun:
    name = run.name if run.run_dir else summary.run_id or run.name
    return replace(
        run, presence=Presence.ANSWERS, summary=summary, heard_at=now, why="", name=name,
        started_at=run.started_at or summary.started_at,
    )  # fmt: skip


def _last_summary(run: FoundRun, known: RunSummary) -> RunSummary:
    """What the newest snapshot of the record tells; what is known where there is none that can be read. Blocks."""
    from atropos_tui.monitor.recorded.moments import Moments  # for what ended only; loading them takes a while
    from atropos_tui.monitor.run_file.reader import RunFileReader

    try:
        reader = RunFileReader(run.run_dir / RUN_FILE)
    except (AtroposError, OSError):
        return known
    try:
        snapshot = reader.keyframe() or Moments(reader).newest()
    except (AtroposError, OSError):
        return known
    finally:
        reader.close()
    recorded = summary_of(snapshot)
    if not snapshot.taken_at:
        return known
    return replace(
        recorded, state=recorded.state if run.elsewhere else known.state, alerts=(), headline="",
        environment=known.environment or recorded.environment, ended_at=known.ended_at,
    )  # fmt: skip
