"""Outcomes, events and the equation they obey. Pure; imports nothing else of the project."""

from atropos_tui.ledger.content import GroupContent, Rollout
from atropos_tui.ledger.ledger import Ledger, LedgerCounts
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.ledger.stream import Clock, EventStream, NullSink, Sink, current_group

__all__ = [
    "Clock",
    "EventStream",
    "GroupContent",
    "Ledger",
    "LedgerCounts",
    "NullSink",
    "Outcome",
    "Rollout",
    "Sink",
    "current_group",
]
