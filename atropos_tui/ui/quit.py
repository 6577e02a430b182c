"""The question before leaving: what becomes of the run. It names the run, and nothing happens by a single key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from atropos_tui.ui.dialog import Choice, Dialog
from atropos_tui.ui.keys import Scope, bindings
from atropos_tui.ui.leaving import Answer, QuitChoice


class QuitScreen(ModalScreen[Answer | None]):
    """Ends with the answer, or None to stay."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.QUIT)

    def __init__(self, run_name: str, choices: Sequence[QuitChoice]) -> None:
        super().__init__()
        self._run_name = run_name
        self._choices = choices

    def compose(self) -> ComposeResult:
        answers = [Choice(f"quit.{choice.answer}", choice.answer, choice.consequence) for choice in self._choices]
        stay = Choice("quit.stay", "stay", "close this question")
        yield Dialog(f"Leave {self._run_name}?", (*answers, stay), id="quit-dialog")

    def action_answer(self, answer: Answer) -> None:
        if any(choice.answer == answer for choice in self._choices):
            self.dismiss(answer)

    def action_stay(self) -> None:
        self.dismiss(None)
