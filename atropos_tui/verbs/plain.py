"""A run in plain lines, for terminals without a screen and for logs."""

from __future__ import annotations

from atropos_tui.ledger import Outcome
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.text_safety import visible


def summary_line(snapshot: RunSnapshot) -> str:
    """One line: how long, in what state, how good, and where the groups went."""
    run, scores, ledger = snapshot.run, snapshot.scores, snapshot.ledger
    elapsed = max(0.0, snapshot.taken_at - run.started_at) if run.started_at else 0.0
    mean = "–" if scores.last20 is None else f"{scores.last20:.3f}"
    terms = [
        f"{outcome.replace('_', ' ')} {ledger.by_outcome[outcome]}"
        for outcome in Outcome
        if ledger.by_outcome.get(outcome)
    ]
    line = f"{elapsed:6.0f} s  {run.state:<9} step {run.step:<5} score {mean}  started {ledger.started}"
    if terms:
        line += " = " + " + ".join(terms)
    if not ledger.balanced:
        line += f"  LEDGER OFF: {ledger.violation}"
    return f"{line}  ({visible(run.headline)})" if run.headline else line
