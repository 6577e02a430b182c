"""All alerts of the run, severe ones first."""

from __future__ import annotations

from atropos_tui.monitor.snapshot import Alert
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.wrapping import wrapped

_COLUMNS = (Column("", 1), Column("for", 4, right=True), Column("alert", 22), Column("", 20, grows=True))


class AlertsPane(Pane):
    title = "Alerts"

    @property
    def alerts(self) -> list[Alert]:
        return sorted(self.moment.snapshot.run.alerts, key=lambda alert: not alert.severe)

    @property
    def rows(self) -> int:
        return len(self.moment.snapshot.run.alerts)

    def body(self, width: int, height: int) -> list[Line]:
        if not self.rows:
            return [waiting("no alerts")]
        lines = Table(_COLUMNS, self.rows, self._row, cursor=self.cursor).lines(width, height)
        details = [Line(dim(part)) for part in wrapped(visible(self.alerts[self.cursor].text), width)]
        return [*lines, Line(), *details]

    def row_key(self, index: int) -> str:
        return self.alerts[index].name

    def _row(self, index: int) -> tuple[Line, ...]:
        alert = self.alerts[index]
        glyph, ink = ("✗", Ink.BAD) if alert.severe else ("!", Ink.WARN)
        return (
            Line(Span(glyph, ink)),
            Line(dim(formatting.age(self.moment.since(alert.since_at)))),
            Line(Span(formatting.words(visible(alert.name)), ink)),
            Line(visible(alert.text)),
        )


class AlertsScreen(ListScreen):
    PANE = AlertsPane
