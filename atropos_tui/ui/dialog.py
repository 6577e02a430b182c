"""A box that asks: a title, a few lines of text, and one line for each answer with its key and its consequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from atropos_tui.ui.ink import Ink, Line, Span, dim, strong
from atropos_tui.ui.keys import named
from atropos_tui.ui.widgets.canvas import Canvas
from atropos_tui.ui.widgets.frame import FRAME_HEIGHT, FRAME_WIDTH, framed

_KEY_WIDTH, _WORD_WIDTH = 5, 10
_MARGIN = 2


class Choice(NamedTuple):
    """One answer: the command that gives it, a word for it, and what follows from it."""

    command_id: str
    word: str
    consequence: str


class Dialog(Canvas):
    """As large as what it says, and no larger than the screen; of text for which there is no room, the end is cut."""

    def __init__(self, title: str, choices: Sequence[Choice], text: Sequence[str] = (), *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, classes="dialog")
        self._title = title
        self._choices = choices
        self._text = [Line(), *(Line(line) for line in text)] if text else []
        answers = [_KEY_WIDTH + _WORD_WIDTH + cell_len(choice.consequence) for choice in choices]
        inner = max(*answers, *(line.width for line in self._text), cell_len(title) + 4, 0)
        self.styles.width = inner + 2 * _MARGIN + FRAME_WIDTH
        self.styles.height = len(self._text) + len(choices) + 2 + FRAME_HEIGHT

    def draw(self, width: int, height: int) -> list[Line]:
        inner = width - FRAME_WIDTH - 2 * _MARGIN
        answers = [Line(), *(self._answer(choice) for choice in self._choices)]
        room = max(0, height - FRAME_HEIGHT - len(answers))
        text = self._text
        if len(text) > room:
            hidden = len(text) - room + 1
            text = [*text[: max(0, room - 1)], Line(dim(f"… and {hidden} more"))][:room]
        body = [Line(" " * _MARGIN) + line.fit(inner) for line in (*text, *answers)]
        return framed(body, width, height, title=Line(strong(self._title)), numbers=Line(), focused=True)

    def _answer(self, choice: Choice) -> Line:
        key = self.atropos.keys_of(named(choice.command_id)).split(" ")[0]
        return (
            Line(Span(key, Ink.ACCENT, bold=True)).fit(_KEY_WIDTH)
            + Line(strong(choice.word)).fit(_WORD_WIDTH)
            + Line(dim(choice.consequence))
        )
