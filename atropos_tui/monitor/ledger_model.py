"""The equation as a section of the snapshot."""

from __future__ import annotations

from atropos_tui.ledger.events import EventBase
from atropos_tui.ledger.ledger import Ledger
from atropos_tui.monitor.snapshot import LedgerSection


class LedgerModel:
    def __init__(self) -> None:
        self._ledger = Ledger()

    def apply(self, event: EventBase) -> bool:
        """Fold one event in; False when it was a move that no group may make and that therefore changed nothing."""
        violations = self._ledger.violation_count
        self._ledger.apply(event)
        return self._ledger.violation_count == violations

    def section(self) -> LedgerSection:
        counts = self._ledger.counts()
        return LedgerSection(
            started=counts.started,
            by_outcome=dict(counts.by_outcome),
            by_reason={outcome: dict(reasons) for outcome, reasons in counts.by_reason.items()},
            balanced=counts.balanced,
            violation=self._ledger.violations[-1] if self._ledger.violations else "",
        )
