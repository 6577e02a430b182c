"""A run whose worker is gone without a word."""

from __future__ import annotations

from dataclasses import replace

from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.snapshot import RunSnapshot


def crashed(snapshot: RunSnapshot, why: str, at: float) -> RunSnapshot:
    """The same moment, of a run whose worker is gone without a word. One that had ended in order stays as it is."""
    if snapshot.run.state in ENDED_STATES:
        return snapshot
    run = replace(
        snapshot.run, state=RunState.CRASHED, headline=f"crashed: {why}", why_ended=why, ended_at=at, alerts=()
    )
    versions = dict(snapshot.versions)
    versions["run"] = versions.get("run", 0) + 1
    return replace(snapshot, run=run, versions=versions, taken_at=max(snapshot.taken_at, at))
