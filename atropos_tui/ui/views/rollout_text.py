"""The text of one rollout, in the view that was asked for."""

from __future__ import annotations

from enum import StrEnum

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.ui.ink import Ink, Line
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.views.messages import MessageText, Reading, prose_lines
from atropos_tui.ui.views.text import Lines, Text


class View(StrEnum):
    """How a rollout is shown."""

    MESSAGES = "messages"
    TOKENS = "tokens"
    FACTS = "facts"


def messages_or_decoded(rollout: RolloutDetail, width: int, reading: Reading) -> Text:
    """The messages; environments need not give any, and then the decoded tokens say the same."""
    if rollout.messages:
        return MessageText(rollout.messages, width, reading)
    if rollout.pieces:
        return MessageText([{"role": "decoded", "content": "".join(rollout.pieces)}], width, reading)
    return Lines([waiting("this rollout has no messages; v shows its tokens")])


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
