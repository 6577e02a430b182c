"""`atropos-tui demo`: a loop that really learns, on the screen or told as JSON; one policy, one task or several."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from atropos_tui.errors import AtroposError
from atropos_tui.ledger import Outcome
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.death_notice import DeathNotice
from atropos_tui.monitor.discovery import run_root
from atropos_tui.monitor.live_run import LiveRun
from atropos_tui.monitor.run_file.place import RUN_FILE, RunFileError
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.verbs.deaths import tell_of_death
from atropos_tui.verbs.decoding import TokenizerOfRun
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.plain import summary_line
from atropos_tui.verbs.pocket_loop import PocketLoop, PocketTask, pocket_loop
from atropos_tui.verbs.screen_flags import ScreenOptions
from atropos_tui.verbs.terminal_needed import require_terminal

SETTLE_SECONDS = 45.0
TELL_SECONDS = 5.0
LOOK_SECONDS = 0.1

Clients: TypeAlias = Mapping[str, RunClient]
Snapshots: TypeAlias = Mapping[str, RunSnapshot]


def run_demo(
    *,
    tasks: Sequence[PocketTask],
    headless: bool,
    seconds: float,
    as_json: bool,
    seed: int,
    screen: ScreenOptions | None = None,
) -> int:
    """Run the demo to its end; returns the exit status."""
    return run_interruptible(_headless(tasks, seconds, as_json, seed) if headless else _on_screen(tasks, seed, screen))


async def _on_screen(tasks: Sequence[PocketTask], seed: int, screen: ScreenOptions | None) -> int:
    require_terminal("--headless does without a screen")
    from atropos_tui.monitor.fleet import Fleet
    from atropos_tui.ui.leaving import QuitChoice
    from atropos_tui.verbs.screen import show_source

    end = QuitChoice("stop", "ends the policy, trajectory API, trainer and environments")
    async with pocket_loop(seed, tasks) as loop:
        if len(tasks) == 1:
            source, fleet = _live(loop, tasks[0]), Fleet(run_root(), notice=DeathNotice, also=loop.directory)
        else:
            source, fleet = None, Fleet(loop.directory, notice=DeathNotice)
        await show_source(source, title="demo", on_quit=(end,), options=screen, fleet=fleet)
    return 0


def _live(loop: PocketLoop, task: PocketTask) -> LiveRun:
    run_dir = loop.run_dir_of(task.name)
    return LiveRun(
        run_dir, TokenizerOfRun(run_dir / RUN_FILE), lambda: loop.worker_of(task.name).poll(),
        start_again=lambda: loop.restart(task), death_notice=DeathNotice(run_dir),
    )  # fmt: skip


async def _headless(tasks: Sequence[PocketTask], seconds: float, as_json: bool, seed: int) -> int:
    async with pocket_loop(seed, tasks) as loop, AsyncExitStack() as stack:
        sockets = {task.name: loop.socket_of(task.name) for task in tasks}
        clients = {name: await stack.enter_async_context(RunClient(socket)) for name, socket in sockets.items()}
        try:
            await _watch(loop, clients, seconds, tell=not as_json)
            snapshots = await _settle(loop, clients)
        except AtroposError:
            await _tell_of_deaths(loop, tasks)
            raise
        result = _result(snapshots, loop.trainer_status(), seconds)
    if as_json:
        sys.stdout.write(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        _tell(snapshots)
    return 0 if result["ledger_balanced"] else 1


async def _tell_of_deaths(loop: PocketLoop, tasks: Sequence[PocketTask]) -> None:
    """Of workers that were killed, before the others are ended."""
    for task in tasks:
        run_dir = loop.run_dir_of(task.name)
        if loop.worker_of(task.name).poll() is not None:
            await tell_of_death(run_dir, loop.worker_of(task.name), await asyncio.to_thread(_last_recorded, run_dir))


def _last_recorded(run_dir: Path) -> RunSnapshot:
    """What the record of a task tells last; nothing where there is none yet. Blocks."""
    from atropos_tui.monitor.recorded.recorded_run import RecordedRun

    try:
        return RecordedRun(run_dir / RUN_FILE, lambda ids: []).newest()
    except RunFileError:
        return RunSnapshot()


async def _watch(loop: PocketLoop, clients: Clients, seconds: float, tell: bool) -> None:
    """Let the loop learn for a while. Raises AtroposError when one of its processes dies."""
    ends_at = time.monotonic() + seconds
    tells_at = time.monotonic()
    while (now := time.monotonic()) < ends_at:
        loop.check_alive()
        if tell and now >= tells_at:
            tells_at = now + TELL_SECONDS
            _tell(await _look(clients))
        await asyncio.sleep(min(1.0, ends_at - now))


async def _settle(loop: PocketLoop, clients: Clients) -> Snapshots:
    """Pause, and step single groups until the trainer has taken every group that was delivered.

    The trainer takes whole batches only, so what is left of the last one must be filled up.
    """
    await asyncio.gather(*(client.pause() for client in clients.values()))
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        loop.check_alive()
        snapshots = await _look(clients)
        quiet = all(map(_is_quiet, snapshots.values()))
        delivered = sum(snapshot.sends.delivered for snapshot in snapshots.values())
        waiting = delivered - loop.trainer_status()["groups_received"]
        if (quiet and waiting == 0) or time.monotonic() > deadline:
            return snapshots
        task, first = next(iter(snapshots.items()))
        batch = first.sends.batch_size // max(1, first.run.group_size)
        if quiet and waiting < batch:
            for _ in range(batch - waiting):
                await clients[task].step_group()
        await asyncio.sleep(LOOK_SECONDS)


def _is_quiet(snapshot: RunSnapshot) -> bool:
    return snapshot.run.state is RunState.PAUSED and not snapshot.queue.in_flight and not snapshot.sends.outbox


async def _look(clients: Clients) -> Snapshots:
    return dict(zip(clients, await asyncio.gather(*(client.snapshot() for client in clients.values())), strict=True))


def _tell(snapshots: Snapshots) -> None:
    """One line an environment, with its name where there are several."""
    width = max(map(len, snapshots)) if len(snapshots) > 1 else 0
    for task, snapshot in snapshots.items():
        name = f"{task:<{width}} " if width else ""
        sys.stdout.write(f"{name}{summary_line(snapshot)}\n")
    sys.stdout.flush()


def _result(snapshots: Snapshots, trainer: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The JSON object that `--json` prints. With several environments each has an object of its own in it."""
    told = {task: _told(snapshot) for task, snapshot in snapshots.items()}
    if len(told) == 1:
        return {"seconds": seconds, **next(iter(told.values())), "trainer": trainer}
    curves = {task: {**one, "score_curve": _curve(snapshots[task])} for task, one in told.items()}
    balanced = all(one["ledger_balanced"] for one in told.values())
    return {"seconds": seconds, "ledger_balanced": balanced, "environments": curves, "trainer": trainer}


def _told(snapshot: RunSnapshot) -> dict[str, Any]:
    counts = snapshot.ledger.by_outcome
    return {
        "ledger": {"started": snapshot.ledger.started} | {outcome.value: counts.get(outcome, 0) for outcome in Outcome},
        "ledger_balanced": snapshot.ledger.balanced,
        "score_mean_first20": snapshot.scores.first20,
        "score_mean_best20": snapshot.scores.best20,
        "score_mean_last20": snapshot.scores.last20,
        "skipped_by_reason": snapshot.ledger.by_reason.get(Outcome.SKIPPED, {}),
    }


def _curve(snapshot: RunSnapshot) -> list[list[float]]:
    """Pairs of seconds since the start of the run and mean score, over the whole run."""
    started = snapshot.run.started_at
    return [[round(point.at - started, 1), round(point.mean, 4)] for point in snapshot.scores.trend]
