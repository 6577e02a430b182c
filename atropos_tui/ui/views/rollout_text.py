"""The text of one rollout, in the view that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.snapshot import GroupDetail, RolloutDetail
from atropos_tui.ui.ink import Ink, Line
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.views.messages import message_lines, prose_lines
from atropos_tui.ui.views.tokens import Lens, Token, TokenLayout, TokenView


class View(StrEnum):
    """How the text of a rollout is shown."""

    MESSAGES = "messages"
    TOKENS = "tokens"


def messages_or_decoded(rollout: RolloutDetail, width: int) -> list[Line]:
    """The messages; environments need not give any, and then the decoded tokens say the same."""
    if rollout.messages:
        return message_lines(rollout.messages, width)
    if rollout.pieces:
        return message_lines([{"role": "decoded", "content": "".join(rollout.pieces)}], width)
    return [waiting("this rollout has no messages; v shows its tokens")]


def token_lines(layout: TokenLayout, lens: Lens, cursor: int) -> Sequence[Line]:
    return TokenView(layout, lens, cursor) if layout.rows else [waiting("this rollout has no tokens")]


def what_broke(detail: GroupDetail, width: int) -> list[Line]:
    """Error, answer of the trajectory API and traceback, where the group has them; for skipped groups, why."""
    ink = Ink.DIM if detail.row.outcome is Outcome.SKIPPED else Ink.BAD
    lines = [*prose_lines(detail.error, width, ink), Line()] if detail.error else []
    for text in (detail.body, detail.traceback):
        if text:
            lines += [*prose_lines(text, width, Ink.DIM), Line()]
    if not lines and not detail.rollouts:
        return [waiting("nothing was kept of this group")]
    return lines


def first_difference(one: Sequence[Token], other: Sequence[Token]) -> int:
    """The number of the first token in which two rollouts differ."""
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a.token_id != b.token_id:
            return index
    return max(0, min(len(one), len(other)) - 1)
