"""A run in one line: what a list of many runs shows of each, in a few hundred bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.decoding import decoded
from atropos_tui.monitor.snapshot import Alert, RunSnapshot


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Times and rates as in `RunSnapshot`; `zero_advantage_share` is of the last `scored` groups."""

    taken_at: float = 0.0
    run_id: str = ""
    environment: str = ""
    state: RunState = RunState.STARTING
    headline: str = ""
    step: int = 0
    total_steps: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    last_progress_at: float = 0.0
    alerts: tuple[Alert, ...] = ()
    in_flight: int = 0
    groups_per_second: float = 0.0
    delivered_per_second: float = 0.0
    scored: int = 0
    mean_score: float = 0.0
    zero_advantage_share: float = 0.0
    outbox: int = 0


def summary_of(snapshot: RunSnapshot) -> RunSummary:
    run = snapshot.run
    return RunSummary(
        taken_at=snapshot.taken_at,
        run_id=run.run_id,
        environment=run.environment,
        state=run.state,
        headline=run.headline,
        step=run.step,
        total_steps=run.total_steps,
        started_at=run.started_at,
        ended_at=run.ended_at,
        last_progress_at=run.last_progress_at,
        alerts=run.alerts,
        in_flight=snapshot.queue.in_flight,
        groups_per_second=snapshot.queue.groups_per_second,
        delivered_per_second=snapshot.sends.delivered_per_second,
        scored=snapshot.scores.window,
        mean_score=snapshot.scores.mean,
        zero_advantage_share=snapshot.scores.zero_advantage_share,
        outbox=snapshot.sends.outbox,
    )


def read_summary(body: bytes) -> RunSummary:
    """Raises ValueError when the body is no summary."""
    return decoded(RunSummary, json.loads(body))
