"""A fleet of recorded runs, in every state that a row can have, and one that notes its commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.monitor.snapshot import Alert
from atropos_tui.monitor.summary import summary_of
from tests.ui import recorded
from tests.ui.recorded import NOW

RUNS = Path("/home/ada/.local/state/atropos-tui/runs")


def found(name: str, presence: Presence, started_ago: float) -> FleetRun:
    return FleetRun(str(RUNS / name), name, presence, NOW - started_ago, RUNS / name)


def fleet_runs() -> tuple[FleetRun, ...]:
    """Nine runs: of each state one, one that does not answer, and one on another host."""
    running = summary_of(recorded.running())
    judge_down = Alert("failures", "9 of 31 groups in the last minute failed: ConnectError: judge.local:8080", NOW - 88)
    stuck = replace(
        running, environment="gsm8k", step=41, total_steps=1_000, groups_per_second=0.0, delivered_per_second=0.0,
        zero_advantage_share=0.64, outbox=36, mean_score=0.12, last_progress_at=NOW - 412,
        headline="waiting for the trainer to take groups: its queue is full (36 groups wait for the trainer, 36 may)",
        alerts=(Alert("no_progress", "no progress for over 300 s", NOW - 112, severe=True), judge_down),
    )  # fmt: skip
    url = "http://node17:7777"
    return (
        replace(found("reverse_strings-20270115-080143", Presence.ANSWERS, 743), summary=running),
        replace(found("gsm8k-20270115-071122", Presence.ANSWERS, 4_000), summary=stuck),
        replace(found("tool_use-20270115-080201", Presence.ANSWERS, 9), summary=summary_of(recorded.starting())),
        replace(found("poems-20270115-063009", Presence.ANSWERS, 6_000), summary=summary_of(recorded.paused())),
        replace(found("mcqa-20270115-062950", Presence.ANSWERS, 6_100), summary=summary_of(recorded.evaluating())),
        FleetRun(url, url, Presence.SILENT, why="the worker at http://node17:7777 does not answer (timed out)"),
        replace(
            found("reverse_strings-20270114-220310", Presence.ENDED, 40_000), why="all 2,000 steps done",
            summary=replace(summary_of(recorded.finished()), ended_at=NOW - 3_600),
        ),
        replace(
            found("gsm8k-20270114-190544", Presence.ENDED, 50_000), why=recorded.crashed().run.why_ended,
            summary=replace(running, state=RunState.CRASHED, ended_at=NOW - 46_000, alerts=()),
        ),
        replace(found("poems-20270113-101500", Presence.ELSEWHERE, 160_000), why="it runs on node4; give its URL"),
    )  # fmt: skip


class RecordedFleet(Fleet):
    """`refusals` are the runs that refuse a command, with what they say."""

    def __init__(self, runs: Sequence[FleetRun] | None = None) -> None:
        super().__init__(clock=lambda: 0.0)
        self._runs = {run.key: run for run in (fleet_runs() if runs is None else runs)}
        self.commands: list[tuple[str, str]] = []
        self.refusals: dict[str, str] = {}
        self.watched = 0

    def show(self, run: FleetRun) -> None:
        """News of one run."""
        self._note(run)

    async def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.watched += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.watched -= 1

    async def command(self, keys: Iterable[str], name: Literal["pause", "resume"]) -> dict[str, str]:
        wanted = list(keys)
        self.commands += [(name, self._runs[key].name) for key in wanted]
        return {key: self.refusals[key] for key in wanted if key in self.refusals}
