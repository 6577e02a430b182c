"""Log lines: equal ones taken together, newest first, with the traceback of the one under the cursor."""

from __future__ import annotations

from atropos_tui.monitor.snapshot import LogRow, LogsSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
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

    def _details(self, width: int) -> list[Line]:
        """The selected line in full where it is cut, and its traceback."""
        row = self.log_rows[self.cursor]
        text = [*visible_lines(row.text), *(visible_lines(row.traceback.rstrip()) if row.traceback else [])]
        if not row.traceback and len(text) == 1 and len(text[0]) < width - 36:
            return []
        return [Line(dim(part)) for line in text for part in wrapped(line, width)]


class LogsScreen(ListScreen):
    PANE = LogsPane
