"""Which alerts a person has not been told of yet."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.snapshot import Alert, RunSection


def worth_telling(run: RunSection) -> tuple[Alert, ...]:
    """The run's alerts; of a run that crashed, the crash."""
    if run.state is RunState.CRASHED:
        return (Alert("crashed", run.why_ended or "the run crashed", run.ended_at, severe=True),)
    return run.alerts


class NewAlerts:
    """Tells which alerts are new: those that were not there before, and those that have become severe."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def among(self, alerts: tuple[Alert, ...]) -> list[Alert]:
        new = [alert for alert in alerts if alert.severe > self._known.get(alert.name, -1)]
        self._known = {alert.name: alert.severe for alert in alerts}
        return new
