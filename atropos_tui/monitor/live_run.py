"""A run in its directory: its worker while that lives, its record when it is dead, and the next worker that starts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.client import RunClient, UnreachableError
from atropos_tui.monitor.discovery import FoundRun, WorkerFile, find_run
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.notes_file import notes_beside
from atropos_tui.monitor.recorded.crash import crashed
from atropos_tui.monitor.run_file.place import RUN_FILE, RunFileError
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot

if TYPE_CHECKING:
    from atropos_tui.monitor.death_notice import DeathNotice
    from atropos_tui.monitor.packed_content import Decode
    from atropos_tui.monitor.recorded.recorded_run import RecordedRun

LOOK_SECONDS = 0.3
POLL_SECONDS = 0.02
BREAK_SECONDS = 0.1
LAST_LINES = 3

# How long a process may take from closing its connections to its socket, and one of ours from there to being gone.
EXIT_SECONDS = 1.0

# The exit status of a process of ours, negative for a signal; None while it runs.
ExitStatus = Callable[[], int | None]


class LiveRun:
    """Watches and commands the run in a directory. Raises AtroposError as `RunClient` does.

    When the worker dies without a word the run is shown as crashed, with its exit status where that is known and the
    last lines of its log; groups then come from its run file. A worker that is started in the same directory is
    followed again. `death_notice` tells the operator of a worker that dies while it is watched.
    """

    def __init__(
        self,
        run_dir: Path,
        decode: Decode,
        exit_status: ExitStatus | None = None,
        *,
        start_again: Callable[[], None] | None = None,
        death_notice: DeathNotice | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._decode = decode
        self._exit_status = exit_status
        self._start_again = start_again
        self._death_notice = death_notice
        self._watched_pid = 0
        self._telling: set[asyncio.Task[None]] = set()
        self._client: RunClient | None = None
        self._socket = ""
        self._recorded: RecordedRun | None = None

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """Whole snapshots; ends when the worker ended in order. UnreachableError when it lives and doesn't answer."""
        snapshot = RunSnapshot()
        while True:
            run = await self._find()
            if run.alive:
                async with aclosing((await self._connected(run)).stream(hz)) as snapshots:  # type: ignore[type-var]
                    with contextlib.suppress(UnreachableError):
                        async for snapshot in snapshots:
                            self._watched_pid = run.worker.pid
                            yield snapshot
                if snapshot.run.state in ENDED_STATES:
                    return
                run = await self._after_the_break()
                if run.alive:
                    raise UnreachableError("the connection to the worker broke", "it is tried again")
            if run.worker.ended_at:
                yield await self._ended(snapshot, run)
                return
            status, at = await self._status(), time.time()
            watched = self._watched_pid == run.worker.pid
            known = snapshot if snapshot.taken_at else await self._last_known(snapshot)
            dead = found_dead(known, run, status, at, watched)
            # A run that had ended has told of that, and its worker stayed only to be looked at.
            was_at_work = introduced(known, run.worker).run.state not in ENDED_STATES
            if watched and was_at_work and self._death_notice is not None:
                task = asyncio.create_task(self._death_notice.tell(dead.run, run.worker))
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)
            yield dead
            if snapshot.taken_at:
                # The record may know a little more, which takes longer to find out.
                yield found_dead(await self._last_known(snapshot), run, status, at, watched)
            await self._until_alive()

    @property
    def notes_file(self) -> Path:
        """Where notes on the run are kept, whether it lives or not."""
        return notes_beside(self._run_dir / RUN_FILE)

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        search: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        """Groups that ended, newest first; those whose messages match where `search` is given."""
        source = await self._reading()
        return await source.groups(
            older_than=older_than, limit=limit, outcome=outcome, reason=reason, search=search, query=query
        )

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full."""
        return await (await self._reading()).group(group_id)

    async def config(self) -> tuple[ConfigRow, ...]:
        """The merged configuration, with the source of each value."""
        return await (await self._reading()).config()

    async def pause(self) -> None:
        await (await self._commanded()).pause()

    async def pause_now(self) -> None:
        """Let no further group start, and put those in flight back into the backlog."""
        await (await self._commanded()).pause_now()

    async def resume(self) -> None:
        await (await self._commanded()).resume()

    async def step_group(self) -> None:
        """Let exactly one more group start, then stay paused."""
        await (await self._commanded()).step_group()

    async def cancel_group(self, group_id: int) -> bool:
        """Give up a group that is still being made. False: the run takes the command when its loop is free."""
        return await (await self._commanded()).cancel_group(group_id)

    async def requeue_group(self, group_id: int) -> bool:
        """Put a group that is still being made back into the backlog."""
        return await (await self._commanded()).requeue_group(group_id)

    async def evaluate_now(self) -> bool:
        """Start an evaluation."""
        return await (await self._commanded()).evaluate_now()

    async def stop(self) -> None:
        """End the run in order, and the worker with it."""
        await (await self._commanded()).stop()

    async def restart(self) -> Self:
        """Let another worker go on with a run that is over: with the same outbox and place in the data.

        Raises AtroposError when its worker is still at work, though a record that was looked at may end before that.
        """
        if self._start_again is None:
            raise AtroposError("this screen cannot start workers", "start it as before, with --run-dir")
        run = await self._find()
        if run.alive:
            worker = await self._connected(run)
            if (await worker.summary()).state not in ENDED_STATES:
                raise AtroposError("the run goes on: somebody has started it again", "open it anew to watch it")
            # The run is over, and its worker stays only to be looked at.
            await worker.stop()
        await asyncio.to_thread(self._start_again)
        return self

    async def close(self) -> None:
        """Waits for who is being told of a death; the settings of alerts bound that."""
        if self._telling:
            await asyncio.wait(self._telling)
        if self._client is not None:
            await self._client.close()
        if self._recorded is not None:
            await self._recorded.close()

    async def _find(self) -> FoundRun:
        run = await asyncio.to_thread(find_run, self._run_dir)
        if run is None:
            raise UnreachableError(f"there is no run in {self._run_dir} any more")
        return run

    async def _after_the_break(self) -> FoundRun:
        """The run once its worker is gone; a process that is killed lets go of its connections before its socket."""
        deadline = time.monotonic() + EXIT_SECONDS
        while (run := await self._find()).alive and time.monotonic() < deadline:  # noqa: ASYNC110  as below
            await asyncio.sleep(BREAK_SECONDS)
        return run

    async def _until_alive(self) -> None:
        while not (await self._find()).alive:  # noqa: ASYNC110  another process starts it, which tells us nothing
            await asyncio.sleep(LOOK_SECONDS)

    async def _connected(self, run: FoundRun) -> RunClient:
        if self._client is None or self._socket != run.worker.socket:
            if self._client is not None:
                await self._client.close()
            self._socket = run.worker.socket
            self._client = RunClient(self._socket, via="screen")
        return self._client

    async def _commanded(self) -> RunClient:
        run = await self._find()
        if not run.alive:
            raise AtroposError("the worker is gone", "start the run again to command it")
        return await self._connected(run)

    async def _reading(self) -> RunClient | RecordedRun:
        run = await self._find()
        if run.alive:
            return await self._connected(run)
        if self._recorded is None:
            self._recorded = await asyncio.to_thread(self._open_record)
        return self._recorded

    def _open_record(self) -> RecordedRun:
        from atropos_tui.monitor.recorded.recorded_run import RecordedRun  # for the dead only; loading it takes a while

        return RecordedRun(self._run_dir / RUN_FILE, self._decode)

    async def _last_known(self, snapshot: RunSnapshot) -> RunSnapshot:
        """What the record has; what was seen last where there is none."""
        with contextlib.suppress(RunFileError):
            recorded = await asyncio.to_thread(self._open_record)
            try:
                return await asyncio.to_thread(recorded.newest)
            finally:
                await recorded.close()
        return snapshot

    async def _ended(self, snapshot: RunSnapshot, run: FoundRun) -> RunSnapshot:
        """The last moment of a run whose worker said goodbye while nobody watched."""
        snapshot = introduced(await self._last_known(snapshot), run.worker)
        if snapshot.run.state in ENDED_STATES:
            return snapshot
        state = RunState.CRASHED if run.worker.end_state == RunState.CRASHED else RunState.FINISHED
        section = replace(
            snapshot.run, state=state, headline=f"{state}: {run.worker.why}", why_ended=run.worker.why,
            ended_at=run.worker.ended_at,
        )  # fmt: skip
        return replace(snapshot, run=section, taken_at=max(snapshot.taken_at, run.worker.ended_at))

    async def _status(self) -> int | None:
        """The exit status of a worker that is ours, as soon as it is known."""
        if self._exit_status is None:
            return None
        deadline = time.monotonic() + EXIT_SECONDS
        while (status := self._exit_status()) is None and time.monotonic() < deadline:  # noqa: ASYNC110  as above
            await asyncio.sleep(POLL_SECONDS)
        return status


def introduced(snapshot: RunSnapshot, worker: WorkerFile) -> RunSnapshot:
    """The snapshot as one of this worker, who may have died before the record or anybody else knew of it."""
    if snapshot.run.pid == worker.pid:
        return snapshot
    run = replace(
        snapshot.run, run_id=worker.run_id, pid=worker.pid, environment=worker.environment, file=worker.file,
        state=RunState.STARTING, started_at=worker.started_at, why_ended="", ended_at=0.0, headline="", traceback="",
    )  # fmt: skip
    return replace(snapshot, run=run, taken_at=max(snapshot.taken_at, worker.started_at))


def found_dead(
    snapshot: RunSnapshot, run: FoundRun, status: int | None, at: float, just_now: bool = True
) -> RunSnapshot:
    """The snapshot as of a run whose worker was found dead at this time (Unix seconds), and why in words.

    `just_now`: it died when it was found dead, so that one can say how long after its last progress.
    """
    lines = last_log_lines(run.run_dir, LAST_LINES)
    log = f"; its log ends with: {' | '.join(lines)}" if lines else ""
    progress = snapshot.run.last_progress_at if snapshot.run.pid == run.worker.pid else 0.0
    after = f", {max(0.0, at - progress):.0f} s after its last progress" if just_now and progress else ""
    return crashed(introduced(snapshot, run.worker), f"the worker {how_it_ended(status)}{after}{log}", at)


def how_it_ended(status: int | None) -> str:
    """An exit status in words; None is one that nobody knows."""
    if status is None:
        return "is gone without a word"
    if status < 0:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    return f"ended with exit status {status}"


def last_log_lines(run_dir: Path, count: int) -> list[str]:
    """The end of the worker's log, without empty lines."""
    try:
        with (run_dir / "worker.log").open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - 64_000))
            lines = log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [line.strip() for line in lines if line.strip()][-count:]
