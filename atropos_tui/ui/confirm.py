"""The question before a command that costs something. It names what it is about, and one key more says yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from atropos_tui.ui.dialog import Choice, Dialog
from atropos_tui.ui.keys import Scope, bindings


class ConfirmScreen(ModalScreen[bool]):
    """`title` is the question, `consequence` what follows from yes, `names` what it is about, one a line."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.CONFIRM)

    def __init__(self, title: str, consequence: str, names: Sequence[str] = ()) -> None:
        super().__init__()
        self._title = title
        self._consequence = consequence
        self._names = names

    def compose(self) -> ComposeResult:
        choices = (Choice("confirm.yes", "yes", self._consequence), Choice("confirm.no", "no", "close this question"))
        yield Dialog(self._title, choices, self._names, id="confirm-dialog")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
