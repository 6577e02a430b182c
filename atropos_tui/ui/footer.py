"""The line at the bottom: the keys that matter on this screen."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit
from atropos_tui.ui.keys import Hint, hint
from atropos_tui.ui.widgets.canvas import Canvas

# Beside what else can be done with a recorded run.
_TIME_HINTS = (
    hint("time.event_back", "time.event_on", label="event"),
    hint("time.step_back", "time.step_on", label="step"),
    hint("time.minute_back", "time.minute_on", label="minute"),
)


class Footer(Canvas):
    """Shows `hints` as far as there is room, the most important first; disarmed ones are faint."""

    def __init__(self, hints: Sequence[Hint], *, read_only: bool) -> None:
        super().__init__(id="footer")
        self._hints = hints
        self._read_only = read_only

    def show_hints(self, hints: Sequence[Hint]) -> None:
        self._hints = hints
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        del height
        hints = self._hints
        if self.atropos.recorded is not None:
            hints = (*_TIME_HINTS, *(hint for hint in hints if not hint.changes_run))
        return [Line(" ") + join_that_fit([self._entry(hint) for hint in hints], width - 2, "   ")]

    def _entry(self, hint: Hint) -> Line:
        keys = "/".join(self.atropos.keys_of(command).split(" ")[0] for command in hint.commands)
        if hint.changes_run and self._read_only:
            return Line(faint(f"{keys} {hint.label}"))
        return Line(Span(keys, Ink.ACCENT, bold=True), dim(f" {hint.label}"))
