"""Log lines: equal ones taken together, newest first, with the traceback of the one under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from atropos_tui.monitor.snapshot import LogRow, LogsSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, strong
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, waiting
from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.wrapping import wrapped

_LEVELS = {
    "CRITICAL": ("✗", Ink.BAD),
    "ERROR": ("✗", Ink.BAD),
    "WARNING": ("!", Ink.WARN),
    "INFO": ("·", Ink.DIM),
    "DEBUG": ("·", Ink.FAINT),
}
_DETAIL_LABEL = 8
_COLUMNS = (
    Column("", 1),
    Column("last", 4, right=True),
    Column("times", 6, right=True),
    Column("logger", 16, rank=2),
    Column("line", 20, grows=True),
)


class LogsPane(Pane):
    title = "Logs"

    @property
    def logs(self) -> LogsSection:
        return self.moment.snapshot.logs

    @property
    def log_rows(self) -> tuple[LogRow, ...]:
        """What ended the run comes first."""
        run = self.moment.snapshot.run
        if not run.traceback:
            return self.logs.rows
        return (LogRow("CRITICAL", "run", run.why_ended, 1, run.ended_at, run.ended_at, run.traceback), *self.logs.rows)

    @property
    def rows(self) -> int:
        return len(self.log_rows)

    def row_key(self, index: int) -> tuple[str, str, float]:
        row = self.log_rows[index]
        return row.level, row.logger, row.first_at

    def numbers(self, room: int) -> Line:
        del room
        logs = self.logs
        errors = Span(formatting.plural(logs.errors, "error"), Ink.BAD if logs.errors else Ink.DIM)
        warnings = Span(formatting.plural(logs.warnings, "warning"), Ink.WARN if logs.warnings else Ink.DIM)
        dropped = f" · {formatting.count(logs.dropped)} distinct lines dropped" if logs.dropped else ""
        return Line(errors, dim(" · "), warnings, dim(dropped))

    def body(self, width: int, height: int) -> list[Line]:
        if not self.log_rows:
            return [waiting("nothing has been logged yet")]
        details = self._details(width)[: height * 3 // 5]
        room = height - len(details) - 1 if details else height
        lines = Table(_COLUMNS, self.rows, self._row, cursor=self.cursor).lines(width, room)
        if not details:
            return lines
        lines += [Line()] * (room - len(lines))
        return [*lines, Line(faint("─" * width)), *details]

    def _row(self, index: int) -> tuple[Line, ...]:
        row = self.log_rows[index]
        glyph, ink = _LEVELS.get(row.level, ("·", Ink.DIM))
        return (
            Line(Span(glyph, ink)),
            Line(dim(formatting.age(self.moment.since(row.last_at)))),
            Line(formatting.count(row.count)) if row.count > 1 else Line(faint("1")),
            Line(dim(visible(row.logger))),
            Line(Span(visible(row.text), ink if ink is not Ink.DIM else Ink.TEXT)),
        )

    @property
    def group_id(self) -> int | None:
        """The group that the line under the cursor tells of."""
        group_id = self.log_rows[self.cursor].group_id if self.cursor < self.rows else -1
        return group_id if group_id >= 0 else None

    def _details(self, width: int) -> list[Line]:
        """The selected line in full: the root cause first, then which item it was, when, and the traceback."""
        row = self.log_rows[self.cursor]
        _, ink = _LEVELS.get(row.level, ("·", Ink.DIM))
        ink = Ink.TEXT if ink is Ink.DIM else ink
        lines = [Line(strong(part, ink)) for part in wrapped(visible(row.text), width)]
        if row.item:
            lines.append(fact("item", Line(visible(row.item)), _DETAIL_LABEL).fit(width))
        times = f"{formatting.plural(row.count, 'time')}, the last {self._ago(row.last_at)} ago"
        first_time = f", the first {self._ago(row.first_at)} ago" if row.count > 1 else ""
        lines.append(fact("seen", Line(dim(times + first_time)), _DETAIL_LABEL).fit(width))
        traceback = visible_lines(row.traceback.rstrip()) if row.traceback else []
        return lines + [Line(dim(part)) for line in traceback for part in wrapped(line, width)]

    def _ago(self, at: float) -> str:
        return formatting.age(self.moment.since(at))


class LogsScreen(ListScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LOGS, Scope.LIST)
    SCOPES = (Scope.LOGS, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("app.back"),
        hint("logs.open"),
        hint("list.down", "list.up", label="move"),
        hint("list.page_down", "list.page_up", label="page"),
        hint("show.help"),
        hint("app.quit"),
    )
    PANE = LogsPane

    def action_open(self) -> None:
        group_id = self.query_one(LogsPane).group_id
        if group_id is None:
            self.atropos.say("this line tells of no group", "warning")
        else:
            self.atropos.show_group(group_id)
