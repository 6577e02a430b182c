"""A screen that is one framed list or text with a cursor: logs, evals, alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from atropos_tui.ui.keys import Hint, Scope, bindings, hint
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.run_screen import RunScreen


class ListScreen(RunScreen):
    """Subclasses name their pane; the cursor keys move in it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LIST)
    SCOPES: ClassVar[Sequence[Scope]] = (Scope.LIST, Scope.EVERYWHERE)
    FOOTER: ClassVar[Sequence[Hint]] = (
        hint("app.back"),
        hint("list.down", "list.up", label="move"),
        hint("list.page_down", "list.page_up", label="page"),
        hint("show.help"),
        hint("app.quit"),
    )
    PANE: type[Pane]

    def compose_middle(self) -> ComposeResult:
        yield self.PANE()

    @property
    def pane(self) -> Pane:
        return self.query_one(Pane)

    def action_move(self, by: int) -> None:
        self.pane.move_cursor(by)

    def action_move_page(self, pages: int) -> None:
        self.pane.move_cursor(pages * max(1, self.pane.size.height // 2))

    def action_move_to_end(self, direction: int) -> None:
        self.pane.move_cursor(direction * self.pane.rows)
