"""Outcomes, events and the equation they obey. Pure; imports nothing else of the project.

Names load on first use, so that the screen gets the vocabulary without the models of the events.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atropos_tui.ledger.content import GroupContent, Rollout
    from atropos_tui.ledger.ledger import Ledger, LedgerCounts
    from atropos_tui.ledger.outcomes import Outcome
    from atropos_tui.ledger.stream import Clock, EventStream, NullSink, Sink, current_group, current_rollout

_HOME_OF = {
    "Clock": "stream",
    "EventStream": "stream",
    "GroupContent": "content",
    "Ledger": "ledger",
    "LedgerCounts": "ledger",
    "NullSink": "stream",
    "Outcome": "outcomes",
    "Rollout": "content",
    "Sink": "stream",
    "current_group": "stream",
    "current_rollout": "stream",
}

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
    "current_rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
