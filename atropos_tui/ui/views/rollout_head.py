"""What stands above the text of a rollout: the group's facts, the scores of all its rollouts, this one's facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import RolloutDetail
from atropos_tui.monitor.notes import Note
from atropos_tui.monitor.snapshot import EndedRow
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, dim, join, join_that_fit, strong
from atropos_tui.ui.phrases import OUTCOME_INKS, outcome_glyph, short_reason
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.views.tokens import Tokens

_CHIP_WIDTH = 7
_BLOCKS = "▁▂▃▄▅▆▇█"


def group_facts(row: EndedRow, seconds_ago: float, width: int) -> Line:
    """Which group, what became of it, when and from which weights."""
    why = "" if row.outcome is Outcome.DELIVERED else f" · {short_reason(row)}"
    parts = [
        Line(dim("group "), strong(str(row.group_id))),
        Line(Span(f"{outcome_glyph(row.outcome)} {row.outcome}{why}", OUTCOME_INKS[row.outcome])),
        Line(dim("step "), formatting.count(row.step)),
        Line(dim("took "), formatting.duration(row.seconds)),
        Line(formatting.age(seconds_ago), dim(" ago")),
    ]
    if row.weight_version is not None:
        parts.append(Line(dim("weights "), str(row.weight_version)))
    return join_that_fit(parts, width, "   ")


def note_line(note: Note) -> Line:
    """The bookmark and the note of who looks at the run."""
    mark = Span("◆ ", Ink.WARN, bold=True) if note.bookmarked else Span("")
    return Line(mark, dim("note " if note.text else "bookmarked"), visible(note.text))


def score_chips(rollouts: Sequence[RolloutDetail], chosen: int, beside: int | None, width: int) -> list[Line]:
    """A bar and a number for the score of each rollout; as many as fit around the chosen one.

    The one `beside` it, if two are compared, is marked too.
    """
    room = max(1, width // _CHIP_WIDTH)
    first = max(0, min(chosen - room // 2, len(rollouts) - room))
    finite = [rollout.score for rollout in rollouts if rollout.score is not None and math.isfinite(rollout.score)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    bars, numbers = Line(), Line()
    for index in range(first, min(len(rollouts), first + room)):
        score = rollouts[index].score
        share = (score - low) / (high - low) if score in finite and score is not None and high > low else 0.0
        ink = Ink.ACCENT if index in (chosen, beside) else Ink.FAINT
        bars += Line(Span(_BLOCKS[min(7, int(share * 7.999))] * (_CHIP_WIDTH - 2) + "  ", ink))
        numbers += Line(_chip("–" if score is None else formatting.score(score), index, chosen, beside)) + Line("  ")
    return [bars, numbers]


def _chip(text: str, index: int, chosen: int, beside: int | None) -> Span:
    if index == beside:
        return Span(f"({text})".center(_CHIP_WIDTH - 2), Ink.ACCENT, bold=True)
    label = text.center(_CHIP_WIDTH - 2)
    return Span(label, Ink.ACCENT, True, Ground.CURSOR) if index == chosen else dim(label)


def rollout_facts(rollout: RolloutDetail, group: Sequence[RolloutDetail], tokens: Tokens, width: int) -> Line:
    """Score, length, the parts of the score where the environment tells them, and how the rollout ended.

    Where there is too little room for all, it is said in fewer words, and the parts come before the length.
    """
    parts = [Line(dim(f"{visible(name)} "), formatting.score(value)) for name, value in rollout.parts.items()]
    end = []
    if rollout.finish_reason:
        cut = rollout.finish_reason == "length"
        end.append(Line(dim("finish "), Span(visible(rollout.finish_reason), Ink.WARN if cut else Ink.TEXT)))
    many, trained = formatting.count(len(tokens)), formatting.count(tokens.trained)
    length = [Line(many, dim(" tokens, "), trained, dim(" trained"))] if tokens else []
    whole = join([*_score(rollout, group, " to the mean"), *length, *parts, *end], "   ")
    if whole.width <= width:
        return whole
    length = [Line(trained, dim("/"), many, dim(" trained"))] if tokens else []
    return join_that_fit([*_score(rollout, group), *parts, *length, *end], width, "  ")


def _score(rollout: RolloutDetail, group: Sequence[RolloutDetail], to_what: str = "") -> list[Line]:
    """The score, and how far it is above the mean of the group."""
    if rollout.score is None:
        return []
    score = Line(dim("score "), strong(f"{rollout.score:.4g}"))
    if not math.isfinite(rollout.score):
        return [score]
    finite = [other.score for other in group if other.score is not None and math.isfinite(other.score)]
    return [score + Line(dim(f" ({rollout.score - fmean(finite):+.2f}{to_what})"))]
