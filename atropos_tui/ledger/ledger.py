"""The ledger: each group that was started is in exactly one outcome.

    started = in_flight + in_outbox + delivered + skipped + rejected + failed + refused + requeued

A pure fold over events, used by the runtime (which keeps it) and by the monitor (which shows it).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from atropos_tui.ledger.events import EventBase, GroupMove, GroupStarted
from atropos_tui.ledger.outcomes import LEGAL_MOVES, OPEN_OUTCOMES, Outcome

VIOLATIONS_KEPT = 20


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """How many groups are in each outcome, and by which reason."""

    started: int
    by_outcome: Mapping[Outcome, int]
    by_reason: Mapping[Outcome, Mapping[str, int]]
    violations: int

    @property
    def accounted(self) -> int:
        return sum(self.by_outcome.values())

    @property
    def balanced(self) -> bool:
        """Whether the equation holds and no group ever made an illegal move."""
        return self.started == self.accounted and self.violations == 0


class Ledger:
    """Counts groups by outcome. Memory is bounded by the number of groups that are on the way.

    `violations` has the newest illegal moves in words, `violation_count` tells how many there were.
    """

    def __init__(self) -> None:
        self._started = 0
        self._open: dict[int, Outcome] = {}
        self._final: Counter[Outcome] = Counter()
        self._reasons: dict[Outcome, Counter[str]] = {outcome: Counter() for outcome in Outcome}
        self.violation_count = 0
        self.violations: deque[str] = deque(maxlen=VIOLATIONS_KEPT)

    def apply(self, event: EventBase) -> None:
        """Fold one event in. An illegal move is noted and changes nothing else."""
        if isinstance(event, GroupStarted):
            self._start(event.group_id)
        elif isinstance(event, GroupMove):
            self._move(event)

    def where(self, group_id: int) -> Outcome | None:
        """The outcome of a group that is on the way; None for one that ended or never started."""
        return self._open.get(group_id)

    def in_outcome(self, outcome: Outcome) -> tuple[int, ...]:
        """The groups that are now in `outcome`, oldest first; only for outcomes on the way."""
        return tuple(group_id for group_id, now in self._open.items() if now is outcome)

    def counts(self) -> LedgerCounts:
        on_the_way = Counter(self._open.values())
        return LedgerCounts(
            started=self._started,
            by_outcome={outcome: self._final[outcome] + on_the_way[outcome] for outcome in Outcome},
            by_reason={outcome: dict(reasons) for outcome, reasons in self._reasons.items() if reasons},
            violations=self.violation_count,
        )

    def _start(self, group_id: int) -> None:
        if group_id in self._open:
            self._note(f"group {group_id} was started twice")
            return
        self._started += 1
        self._open[group_id] = Outcome.IN_FLIGHT

    def _move(self, event: GroupMove) -> None:
        now = self._open.get(event.group_id)
        if now is None or event.outcome not in LEGAL_MOVES[now]:
            origin = now or "no open outcome"
            self._note(f"group {event.group_id} moved from {origin} to {event.outcome}")
            return
        if event.outcome in OPEN_OUTCOMES:
            self._open[event.group_id] = event.outcome
            return
        del self._open[event.group_id]
        self._final[event.outcome] += 1
        if event.reason_word:
            self._reasons[event.outcome][event.reason_word] += 1

    def _note(self, violation: str) -> None:
        self.violation_count += 1
        self.violations.append(violation)
