"""The keys of a screen, made from the key table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, spread, strong
from atropos_tui.ui.keys import Command, Scope, bindings, commands
from atropos_tui.ui.widgets.canvas import Canvas
from atropos_tui.ui.widgets.frame import FRAME_HEIGHT, FRAME_WIDTH, framed
from atropos_tui.ui.wrapping import wrapped

_KEYS_WIDTH = 16


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.LIST, Scope.HELP)

    def __init__(self, scopes: Sequence[Scope]) -> None:
        super().__init__()
        self._scopes = scopes

    def compose(self) -> ComposeResult:
        yield HelpPage(self._scopes)

    def action_close(self) -> None:
        self.dismiss()

    def action_move(self, by: int) -> None:
        self.query_one(HelpPage).scroll_by(by)

    def action_move_page(self, pages: int) -> None:
        page = self.query_one(HelpPage)
        page.scroll_by(pages * max(1, page.size.height - FRAME_HEIGHT - 1))

    def action_move_to_end(self, direction: int) -> None:
        page = self.query_one(HelpPage)
        page.scroll_by(direction * page.length)


class HelpPage(Canvas):
    """One block for each scope, in two columns where there is room; at the right the ids that a keymap names."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        super().__init__(id="help")
        self._scopes = scopes
        self._first = 0
        self.length = 0

    def scroll_by(self, lines: int) -> None:
        self._first = max(0, self._first + lines)
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        inner, room = width - FRAME_WIDTH, height - FRAME_HEIGHT
        lines = self._lines(inner)
        self.length = len(lines)
        self._first = min(self._first, max(0, len(lines) - room))
        below = len(lines) - self._first - room
        more = Line(dim(f"↓ {below} more lines")) if below > 0 else Line(dim("esc closes"))
        shown = lines[self._first : self._first + room]
        return framed(shown, width, height, title=Line(strong("Keys")), numbers=more, focused=True)

    def _lines(self, width: int) -> list[Line]:
        half = width if width < 120 else (width - 4) // 2
        blocks = [self._block(scope, half) for scope in self._scopes]
        if half == width:
            return [line for block in blocks for line in block]
        left, right = _balanced(blocks)
        rows = max(len(left), len(right))
        left += [Line()] * (rows - len(left))
        right += [Line()] * (rows - len(right))
        return [a.fit(half) + Line("    ") + b for a, b in zip(left, right, strict=True)]

    def _block(self, scope: Scope, width: int) -> list[Line]:
        entries = [line for command in commands([scope]) for line in self._entry(command, width)]
        return [Line(strong(scope.value, Ink.ACCENT)), *entries, Line()]

    def _entry(self, command: Command, width: int) -> list[Line]:
        """In as many lines as it takes: neither what a key does nor its id may be missing."""
        first, *rest = wrapped(command.help, max(1, width - _KEYS_WIDTH))
        keys = Line(Span(self.atropos.keys_of(command), bold=True)).fit(_KEYS_WIDTH)
        lines = [keys + Line(dim(first)), *(Line(" " * _KEYS_WIDTH, dim(part)) for part in rest)]
        command_id = Line(faint(command.id))
        if lines[-1].width + command_id.width + 2 <= width:
            return [*lines[:-1], spread(lines[-1], command_id, width)]
        return [*(line.fit(width) for line in lines), command_id.fit_right(width)]


def _balanced(blocks: Sequence[list[Line]]) -> tuple[list[Line], list[Line]]:
    """The blocks in two columns of about the same height, in order."""
    left: list[Line] = []
    right: list[Line] = []
    half = sum(len(block) for block in blocks) / 2
    for block in blocks:
        (left if not right and len(left) + len(block) / 2 <= half else right).extend(block)
    return left, right
