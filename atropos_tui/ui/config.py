"""The merged configuration of the run: each value and where it is from, with a filter."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.snapshot import ConfigRow
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.wrapping import wrapped

CLASS_DEFAULT = "class default"
_LONGEST_NAME = 44
_MOST_DETAILS = 8


class ConfigPane(Pane):
    """`config_rows` is None until they came; `why_none` says why they did not."""

    title = "Configuration"

    def __init__(self) -> None:
        super().__init__()
        self.config_rows: tuple[ConfigRow, ...] | None = None
        self.why_none = ""
        self.words = ""
        self.with_defaults = True

    @property
    def shown_rows(self) -> list[ConfigRow]:
        """Those that have all words of the filter, in any case, anywhere."""
        words = self.words.lower().split()
        return [
            row
            for row in self.config_rows or ()
            if (self.with_defaults or row.source != CLASS_DEFAULT)
            and all(word in f"{row.name} {row.value} {row.source}".lower() for word in words)
        ]

    @property
    def rows(self) -> int:
        return len(self.shown_rows)

    def row_key(self, index: int) -> str:
        return self.shown_rows[index].name

    def numbers(self, room: int) -> Line:
        every = self.config_rows
        if not every:
            return Line()
        changed = sum(row.source != CLASS_DEFAULT for row in every)
        parts = [Line(strong(str(changed)), dim(f" of {formatting.plural(len(every), 'value')} set"))]
        if self.words or not self.with_defaults:
            parts.insert(0, Line(Span(f"{self.rows} shown", Ink.ACCENT)))
        if self.words:
            parts.insert(0, Line(dim("filter "), visible(self.words)))
        return join_that_fit(parts, room, " · ")

    def body(self, width: int, height: int) -> list[Line]:
        if self.config_rows is None:
            return [waiting(visible(self.why_none) or "asking the run for its configuration")]
        rows = self.shown_rows
        if not rows:
            return [waiting("nothing fits the filter" if self.config_rows else "no configuration was recorded")]
        name_width = min(_LONGEST_NAME, max(cell_len(row.name) for row in rows))
        columns = (
            Column("name", name_width),
            Column("value", 10, grows=True),
            Column("from", min(24, max(5, *(cell_len(row.source) for row in rows))), rank=1),
        )
        selected = rows[min(self.cursor, len(rows) - 1)]
        details = self._details(selected, width) if cell_len(selected.value) > width - name_width - 28 else []
        room = height - (len(details) + 1 if details else 0)
        lines = Table(columns, len(rows), lambda index: _row(rows[index]), cursor=self.cursor).lines(width, room)
        if not details:
            return lines
        return [*lines, *[Line()] * (room - len(lines)), Line(faint("─" * width)), *details]

    def _details(self, row: ConfigRow, width: int) -> list[Line]:
        """A value that its column may cut, in full."""
        parts = wrapped(visible(row.value), width)
        return [Line(part) for part in parts[:_MOST_DETAILS]]


def _row(row: ConfigRow) -> tuple[Line, ...]:
    """What somebody set stands out from what nobody touched."""
    ink = Ink.DIM if row.source == CLASS_DEFAULT else Ink.TEXT
    source = Line(dim(row.source)) if row.source == CLASS_DEFAULT else Line(Span(visible(row.source), Ink.ACCENT))
    return Line(Span(visible(row.name), ink)), Line(Span(visible(row.value), ink)), source


class ConfigScreen(ListScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.CONFIG, Scope.LIST)
    SCOPES = (Scope.CONFIG, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("app.back"),
        hint("config.filter"),
        hint("config.changed"),
        hint("list.down", "list.up", label="move"),
        hint("show.help"),
        hint("app.quit"),
    )
    PANE = ConfigPane
    AUTO_FOCUS = "#configuration"

    def compose_middle(self) -> ComposeResult:
        yield from super().compose_middle()
        bar = Input(id="config-filter", placeholder="words of name, value or source", compact=True)
        bar.cursor_blink = False
        yield bar

    def on_mount(self) -> None:
        self._ask()

    @property
    def config_pane(self) -> ConfigPane:
        return self.query_one(ConfigPane)

    @property
    def _bar(self) -> Input:
        return self.query_one("#config-filter", Input)

    def back(self) -> bool:
        """Close the filter, or take it away."""
        if self._bar.display:
            self._close_bar()
            return True
        if self.config_pane.words:
            self._filter("")
            return True
        return False

    def action_filter(self) -> None:
        self._bar.value = self.config_pane.words
        self._bar.display = True
        self._bar.focus()

    def action_toggle_defaults(self) -> None:
        self.config_pane.with_defaults = not self.config_pane.with_defaults
        self.config_pane.move_cursor(0)

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._bar.display:
            self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        del event
        self._close_bar()

    def _filter(self, words: str) -> None:
        self.config_pane.words = words
        self.config_pane.move_cursor(0)

    def _close_bar(self) -> None:
        self._bar.display = False
        self.config_pane.focus()

    @work
    async def _ask(self) -> None:
        try:
            self.config_pane.config_rows = await self.atropos.source.config()
        except (AtroposError, OSError) as error:
            self.config_pane.why_none = str(error)
        self.config_pane.redraw()
