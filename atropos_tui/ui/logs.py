"""Log lines: equal ones taken together, newest first, with the traceback of the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from atropos_tui.monitor.snapshot import LogRow, LogsSection, RunSnapshot
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.keys import Scope, bindings, hint, named
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import elided, fact, waiting
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
_FURTHER_THAN_ANY_END = 1_000_000
_COLUMNS = (
    Column("", 1),
    Column("last", 4, right=True),
    Column("times", 6, right=True),
    Column("logger", 16, rank=2),
    Column("line", 20, grows=True),
)


class LogsPane(Pane):
    """While somebody reads, which is when the cursor is not on the first line, lines keep their order."""

    title = "Logs"

    def __init__(self) -> None:
        super().__init__()
        self.log_rows: tuple[LogRow, ...] = ()
        self._scrolled = 0

    @property
    def logs(self) -> LogsSection:
        return self.moment.snapshot.logs

    def show(self, moment: Moment) -> None:
        selected = _key(self.log_rows[self.cursor]) if self._reading and self.cursor < self.rows else None
        rows = _rows_of(moment.snapshot)
        if self._reading:
            place = {_key(row): index for index, row in enumerate(self.log_rows)}
            rows = sorted(rows, key=lambda row: place.get(_key(row), -1))  # new ones stand above
        self.log_rows = tuple(rows)
        if selected is not None:
            self.cursor = next((i for i, row in enumerate(rows) if _key(row) == selected), self.cursor)
        super().show(moment)

    @property
    def _reading(self) -> bool:
        return self.cursor > 0 or self.zoomed

    @property
    def rows(self) -> int:
        return len(self.log_rows)

    def row_key(self, index: int) -> tuple[str, str, float]:
        return _key(self.log_rows[index])

    def zoom(self, zoomed: bool) -> None:
        self._scrolled = 0
        super().zoom(zoomed)

    def move_cursor(self, by: int) -> None:
        if self.zoomed:
            self._scrolled = max(0, self._scrolled + by)
            self.redraw()
        else:
            super().move_cursor(by)

    def numbers(self, room: int) -> Line:
        logs = self.logs
        parts = [
            Line(Span(formatting.plural(logs.errors, "error"), Ink.BAD if logs.errors else Ink.DIM)),
            Line(Span(formatting.plural(logs.warnings, "warning"), Ink.WARN if logs.warnings else Ink.DIM)),
        ]
        if logs.dropped:
            parts.append(Line(dim(f"{formatting.count(logs.dropped)} distinct lines dropped")))
        if self._reading:
            parts.append(Line(dim("order held")))
        return join_that_fit(parts, room, " · ")

    def body(self, width: int, height: int) -> list[Line]:
        if not self.log_rows:
            return [waiting("nothing has been logged yet")]
        head, traceback = self._details(width)
        if self.zoomed:
            return self._scrolled_lines([*head, *traceback], height)
        advice = f"; {self.atropos.keys_of(named('logs.zoom'))} shows all"
        details = elided([*head, *traceback], height * 3 // 5, len(head), advice)
        room = height - len(details) - 1 if details else height
        lines = Table(_COLUMNS, self.rows, self._row, cursor=self.cursor).lines(width, room)
        if not details:
            return lines
        lines += [Line()] * (room - len(lines))
        return [*lines, Line(faint("─" * width)), *details]

    def _scrolled_lines(self, lines: list[Line], height: int) -> list[Line]:
        self._scrolled = min(self._scrolled, max(0, len(lines) - height))
        shown = lines[self._scrolled : self._scrolled + height]
        below = len(lines) - self._scrolled - len(shown)
        return [*shown[:-1], Line(faint(f"  … {below + 1:,} more lines"))] if below and shown else shown

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

    def _details(self, width: int) -> tuple[list[Line], list[Line]]:
        """Of the selected line: what it says in full, which item it was and when; and the traceback."""
        row = self.log_rows[min(self.cursor, self.rows - 1)]
        _, ink = _LEVELS.get(row.level, ("·", Ink.DIM))
        ink = Ink.TEXT if ink is Ink.DIM else ink
        lines = [Line(strong(part, ink)) for part in wrapped(visible(row.text), width)]
        if row.item:
            lines.append(fact("item", Line(visible(row.item)), _DETAIL_LABEL).fit(width))
        times = f"{formatting.plural(row.count, 'time')}, the last {self._ago(row.last_at)} ago"
        first_time = f", the first {self._ago(row.first_at)} ago" if row.count > 1 else ""
        lines.append(fact("seen", Line(dim(times + first_time)), _DETAIL_LABEL).fit(width))
        traceback = visible_lines(row.traceback.rstrip()) if row.traceback else []
        return lines, [Line(dim(part)) for line in traceback for part in wrapped(line, width)]

    def _ago(self, at: float) -> str:
        return formatting.age(self.moment.since(at))


def _rows_of(snapshot: RunSnapshot) -> Sequence[LogRow]:
    """Newest first; what ended the run before all."""
    run, rows = snapshot.run, snapshot.logs.rows
    if not run.traceback:
        return rows
    return (LogRow("CRITICAL", "run", run.why_ended, 1, run.ended_at, run.ended_at, run.traceback), *rows)


def _key(row: LogRow) -> tuple[str, str, float]:
    return row.level, row.logger, row.first_at


class LogsScreen(ListScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LOGS, Scope.LIST)
    SCOPES = (Scope.LOGS, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("app.back"),
        hint("logs.open"),
        hint("logs.zoom"),
        hint("list.down", "list.up", label="move"),
        hint("show.help"),
        hint("app.quit"),
        hint("list.page_down", "list.page_up", label="page"),
    )
    PANE = LogsPane

    @property
    def logs_pane(self) -> LogsPane:
        return self.query_one(LogsPane)

    def back(self) -> bool:
        if not self.logs_pane.zoomed:
            return False
        self.logs_pane.zoom(False)
        return True

    def action_move_to_end(self, direction: int) -> None:
        """Of the rows, or of the lines of a traceback."""
        self.logs_pane.move_cursor(direction * _FURTHER_THAN_ANY_END)

    def action_zoom(self) -> None:
        self.logs_pane.zoom(not self.logs_pane.zoomed)

    def action_open(self) -> None:
        group_id = self.logs_pane.group_id
        if group_id is None:
            self.atropos.say("this line tells of no group", "warning")
        else:
            self.atropos.show_group(group_id)
