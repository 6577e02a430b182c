"""What becomes of the run when the screen is left."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Answer: TypeAlias = Literal["stop", "detach"]


class QuitChoice(NamedTuple):
    """One way to leave; `consequence` says what then becomes of the run."""

    answer: Answer
    consequence: str


DETACH = QuitChoice("detach", "the run goes on without this screen")
STOP = QuitChoice("stop", "the run ends; groups in flight return to the backlog")
