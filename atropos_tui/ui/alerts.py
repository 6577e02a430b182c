"""All alerts of the run, severe ones first; enter leads to the evidence of the one under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from atropos_tui.monitor.snapshot import Alert
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, strong
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.inference import InferencePane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.queue import QueuePane
from atropos_tui.ui.panes.scores import ScoresPane
from atropos_tui.ui.panes.sends import SendsPane
from atropos_tui.ui.panes.skipped import SkippedPane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.wrapping import wrapped

_COLUMNS = (Column("", 1), Column("for", 4, right=True), Column("alert", 16), Column("", 20, grows=True))

# Where the evidence of an alert is, and what it is there. Alerts that name a group have it in that group.
_EVIDENCE = {
    "ledger": (QueuePane, "what is in flight"),
    "loop_held": (QueuePane, "the groups that wait for the loop"),
    "disk": (SendsPane, "the outbox and what keeps it from taking groups"),
    "no_progress": (QueuePane, "the groups in flight, and what each waits for"),
    "servers_down": (InferencePane, "the servers, with their last errors"),
    "zero_advantage": (SkippedPane, "the newest groups with identical scores"),
    "queue_full": (SendsPane, "the trainer's queue and its last step"),
    "outbox": (SendsPane, "the outbox and the last error"),
    "failures": (SkippedPane, "the newest groups that failed"),
    "refusals": (SkippedPane, "the newest groups that were refused"),
    "unusable": (SkippedPane, "the newest groups that are no data"),
    "length_drift": (ScoresPane, "the trends of scores and lengths"),
}


class AlertsPane(Pane):
    title = "Alerts"

    @property
    def alerts(self) -> list[Alert]:
        return sorted(self.moment.snapshot.run.alerts, key=lambda alert: not alert.severe)

    @property
    def rows(self) -> int:
        return len(self.moment.snapshot.run.alerts)

    @property
    def alert(self) -> Alert | None:
        """The one under the cursor."""
        return self.alerts[self.cursor] if self.cursor < self.rows else None

    def body(self, width: int, height: int) -> list[Line]:
        alert = self.alert
        if alert is None:
            return [waiting("no alerts"), *self.reason_for_waiting(width)]
        details = self._details(alert, width)
        room = max(2, height - len(details) - 1)
        lines = Table(_COLUMNS, self.rows, self._row, cursor=self.cursor).lines(width, room)
        return [*lines, *[Line()] * (room - len(lines)), Line(faint("─" * width)), *details]

    def row_key(self, index: int) -> str:
        return self.alerts[index].name

    def _details(self, alert: Alert, width: int) -> list[Line]:
        ink = Ink.BAD if alert.severe else Ink.WARN
        since = formatting.age(self.moment.since(alert.since_at))
        title = Line(strong(formatting.words(visible(alert.name)), ink), dim(f"  for {since}"))
        text = [Line(part) for part in wrapped(visible(alert.text), width)]
        return [title, *text, Line(dim("enter shows "), evidence_words(alert))]

    def _row(self, index: int) -> tuple[Line, ...]:
        alert = self.alerts[index]
        glyph, ink = ("✗", Ink.BAD) if alert.severe else ("!", Ink.WARN)
        return (
            Line(Span(glyph, ink)),
            Line(dim(formatting.age(self.moment.since(alert.since_at)))),
            Line(Span(formatting.words(visible(alert.name)), ink)),
            Line(visible(alert.text)),
        )


def evidence_words(alert: Alert) -> str:
    """What enter shows."""
    if alert.group_id >= 0:
        return f"group {alert.group_id}, which shows it"
    _, words = _EVIDENCE.get(alert.name, (None, "the log"))
    return words


class AlertsScreen(ListScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.ALERTS, Scope.LIST)
    SCOPES = (Scope.ALERTS, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("app.back"),
        hint("alerts.evidence"),
        hint("list.down", "list.up", label="move"),
        hint("show.help"),
        hint("app.quit"),
    )
    PANE = AlertsPane

    def action_evidence(self) -> None:
        alert = self.query_one(AlertsPane).alert
        if alert is None:
            return
        if alert.group_id >= 0:
            self.atropos.show_group(alert.group_id)
        elif alert.name in _EVIDENCE:
            pane, _ = _EVIDENCE[alert.name]
            self.atropos.show_pane(pane.number)
        else:
            self.atropos.action_logs()
