"""`atropos-tui demo`: a loop that really learns, on the screen or told as JSON."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import orjson

from atropos_tui.ledger import Outcome
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.verbs.interruption import run_interruptible
from atropos_tui.verbs.plain import summary_line
from atropos_tui.verbs.pocket_loop import PocketLoop, pocket_loop

SETTLE_SECONDS = 45.0
TELL_SECONDS = 5.0
LOOK_SECONDS = 0.1


def run_demo(*, headless: bool, seconds: float, as_json: bool, seed: int) -> int:
    """Run the demo to its end; returns the exit status."""
    return run_interruptible(_headless(seconds, as_json, seed) if headless else _on_screen(seed))


async def _on_screen(seed: int) -> int:
    from atropos_tui.ui.quit import QuitChoice
    from atropos_tui.verbs.screen import show_run

    end = QuitChoice("stop", "ends the policy, the trajectory API, the trainer and the environment")
    async with pocket_loop(seed) as loop:
        await show_run(loop.socket, title="demo", on_quit=(end,))
    return 0


async def _headless(seconds: float, as_json: bool, seed: int) -> int:
    async with pocket_loop(seed) as loop, RunClient(loop.socket) as client:
        await _watch(loop, client, seconds, tell=not as_json)
        snapshot = await _settle(loop, client)
        result = _result(snapshot, loop.trainer_status(), seconds)
    if as_json:
        sys.stdout.write(orjson.dumps(result, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.write(summary_line(snapshot) + "\n")
    return 0 if snapshot.ledger.balanced else 1


async def _watch(loop: PocketLoop, client: RunClient, seconds: float, tell: bool) -> None:
    """Let the loop learn for a while. Raises AtroposError when one of its processes dies."""
    ends_at = time.monotonic() + seconds
    tells_at = time.monotonic()
    while (now := time.monotonic()) < ends_at:
        loop.check_alive()
        if tell and now >= tells_at:
            tells_at = now + TELL_SECONDS
            sys.stdout.write(summary_line(await client.snapshot()) + "\n")
            sys.stdout.flush()
        await asyncio.sleep(min(1.0, ends_at - now))


async def _settle(loop: PocketLoop, client: RunClient) -> RunSnapshot:
    """Pause, and step single groups until the trainer has taken every group that was delivered.

    The trainer takes whole batches only, so what is left of the last one must be filled up.
    """
    await client.pause()
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        loop.check_alive()
        snapshot = await client.snapshot()
        quiet = snapshot.run.state is RunState.PAUSED and not snapshot.queue.in_flight and not snapshot.sends.outbox
        waiting = snapshot.sends.delivered - loop.trainer_status()["groups_received"]
        if (quiet and waiting == 0) or time.monotonic() > deadline:
            return snapshot
        batch = snapshot.sends.batch_size // max(1, snapshot.run.group_size)
        if quiet and waiting < batch:
            for _ in range(batch - waiting):
                await client.step_group()
        await asyncio.sleep(LOOK_SECONDS)


def _result(snapshot: RunSnapshot, trainer: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The JSON object that `--json` prints."""
    counts = snapshot.ledger.by_outcome
    return {
        "seconds": seconds,
        "ledger": {"started": snapshot.ledger.started} | {outcome.value: counts.get(outcome, 0) for outcome in Outcome},
        "ledger_balanced": snapshot.ledger.balanced,
        "score_mean_first20": snapshot.scores.first20,
        "score_mean_best20": snapshot.scores.best20,
        "score_mean_last20": snapshot.scores.last20,
        "skipped_by_reason": snapshot.ledger.by_reason.get(Outcome.SKIPPED, {}),
        "trainer": trainer,
    }
