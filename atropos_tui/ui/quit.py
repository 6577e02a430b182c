"""The question before leaving: what becomes of the run. It names the run, and nothing happens by a single key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from atropos_tui.ui.ink import Ink, Line, Span, dim, strong
from atropos_tui.ui.keys import Scope, bindings, named
from atropos_tui.ui.widgets.canvas import Canvas
from atropos_tui.ui.widgets.frame import FRAME_HEIGHT, FRAME_WIDTH, framed

Answer: TypeAlias = Literal["stop", "detach"]


@dataclass(frozen=True, slots=True)
class QuitChoice:
    """One way to leave; `consequence` says what then becomes of the run."""

    answer: Answer
    consequence: str


DETACH = QuitChoice("detach", "the run goes on without this screen")
STOP = QuitChoice("stop", "the run ends; groups in flight return to the backlog")


class QuitScreen(ModalScreen[Answer | None]):
    """Ends with the answer, or None to stay."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.QUIT)

    def __init__(self, run_name: str, choices: Sequence[QuitChoice]) -> None:
        super().__init__()
        self._run_name = run_name
        self._choices = choices

    def compose(self) -> ComposeResult:
        yield QuitDialog(self._run_name, self._choices)

    def action_answer(self, answer: Answer) -> None:
        if any(choice.answer == answer for choice in self._choices):
            self.dismiss(answer)

    def action_stay(self) -> None:
        self.dismiss(None)


class QuitDialog(Canvas):
    def __init__(self, run_name: str, choices: Sequence[QuitChoice]) -> None:
        super().__init__(id="quit-dialog")
        self._run_name = run_name
        self._choices = choices
        self._entries = self._make_entries()
        self.styles.height = len(self._entries) + 2 + FRAME_HEIGHT
        self.styles.width = max(entry.width for entry in self._entries) + FRAME_WIDTH + 4

    def draw(self, width: int, height: int) -> list[Line]:
        body = [Line(), *(Line("  ") + entry for entry in self._entries)]
        title = Line(strong(f"Leave {self._run_name}?"))
        return framed(body, width, height, title=title, numbers=Line(), focused=True)

    def _make_entries(self) -> list[Line]:
        key_of = {"stop": "quit.stop", "detach": "quit.detach"}
        entries = [self._entry(named(key_of[c.answer]).shown_keys, c.answer, c.consequence) for c in self._choices]
        return [*entries, self._entry("esc", "stay", "close this question")]

    @staticmethod
    def _entry(key: str, word: str, consequence: str) -> Line:
        return Line(Span(key, Ink.ACCENT, bold=True)).fit(5) + Line(strong(word)).fit(8) + Line(dim(consequence))
