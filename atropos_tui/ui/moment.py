"""What the screen draws at one moment: the newest snapshot, the time, and the state of the connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.recorded.timeline import Timeline
from atropos_tui.monitor.snapshot import RunSnapshot

# In these states groups are expected to move.
AT_WORK = frozenset({RunState.RUNNING, RunState.PAUSING, RunState.EVALUATING, RunState.FINISHING})


class Contact(StrEnum):
    """Whether snapshots arrive."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"


@dataclass(frozen=True, slots=True)
class Moment:
    """`now` is on the worker's clock (Unix seconds). `lost_because` and `retry_in` belong to DISCONNECTED.

    `asked` is the command that was sent and whose effect no snapshot shows yet: `pausing`, `resuming` … `timeline` is
    where in a recorded run the snapshot lies, None for a run that is watched while it lives.
    """

    snapshot: RunSnapshot = field(default_factory=RunSnapshot)
    now: float = 0.0
    contact: Contact = Contact.CONNECTING
    lost_because: str = ""
    retry_in: float = 0.0
    asked: str = ""
    timeline: Timeline | None = None

    @property
    def ended(self) -> bool:
        return self.snapshot.run.state in ENDED_STATES

    @property
    def known(self) -> bool:
        """Whether any snapshot has arrived."""
        return self.snapshot.taken_at > 0

    @property
    def waits_for(self) -> str:
        """For panes with nothing to show: what the run as a whole waits for; empty when it waits for nothing."""
        return "" if self.ended else self.snapshot.run.headline

    def since(self, at: float) -> float:
        """Seconds from `at` until now."""
        return max(0.0, self.now - at)
