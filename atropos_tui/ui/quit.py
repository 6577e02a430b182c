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


_KEY_WIDTH, _WORD_WIDTH = 5, 8

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
        longest = max(len(choice.consequence) for choice in choices)
        self.styles.height = len(choices) + 1 + 2 + FRAME_HEIGHT
        self.styles.width = max(_KEY_WIDTH + _WORD_WIDTH + longest, len(run_name) + 10) + FRAME_WIDTH + 4

    def draw(self, width: int, height: int) -> list[Line]:
        entries = [self._entry(f"quit.{choice.answer}", choice.answer, choice.consequence) for choice in self._choices]
        entries.append(self._entry("quit.stay", "stay", "close this question"))
        body = [Line(), *(Line("  ") + entry for entry in entries)]
        title = Line(strong(f"Leave {self._run_name}?"))
        return framed(body, width, height, title=title, numbers=Line(), focused=True)

    def _entry(self, command_id: str, word: str, consequence: str) -> Line:
        key = self.atropos.keys_of(named(command_id)).split(" ")[0]
        return (
            Line(Span(key, Ink.ACCENT, bold=True)).fit(_KEY_WIDTH)
            + Line(strong(word)).fit(_WORD_WIDTH)
            + Line(dim(consequence))
        )
