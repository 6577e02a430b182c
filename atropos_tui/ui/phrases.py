"""Pieces of text that several panes share: empty states, facts, and what became of a group."""

from __future__ import annotations

import re

from atropos_tui.ledger.outcomes import FailReason, Outcome, RejectReason, ScoreSplit, SkipReason
from atropos_tui.monitor.snapshot import EndedRow
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.wrapping import wrapped

SPLIT_WORDS = {ScoreSplit.ALL_BEST: "too easy", ScoreSplit.ALL_WORST: "too hard", ScoreSplit.ALL_EQUAL: "all equal"}
OUTCOME_INKS = {
    Outcome.DELIVERED: Ink.GOOD,
    Outcome.SKIPPED: Ink.DIM,
    Outcome.REJECTED: Ink.WARN,
    Outcome.FAILED: Ink.BAD,
    Outcome.REFUSED: Ink.BAD,
    Outcome.REQUEUED: Ink.DIM,
}
# For columns in which `identical scores` would lose its end.
_ONE_WORD: dict[str, str] = {
    SkipReason.IDENTICAL_SCORES: "identical",
    SkipReason.NO_TRAINABLE_TOKENS: "untrained",
    SkipReason.WRONG_GROUP_SIZE: "odd size",
    RejectReason.COLLECT_TRAJECTORIES: "collect",
    RejectReason.POSTPROCESS_HISTORIES: "postproc.",
    FailReason.INFERENCE_ERROR: "inference",
}
_LAST_LINES = 4
_FIRST_VALUE = re.compile(r"""\{['"]\w{1,30}['"]: (?P<value>'[^']*|"[^"]*|[^,}]+)""")


def waiting(text: str) -> Line:
    """An empty state: what has to come before there is something to see."""
    return Line(Span("◌ ", Ink.FAINT), dim(text))


def waiting_wrapped(text: str, width: int) -> list[Line]:
    """The same in as many lines as it takes."""
    first, *rest = wrapped(text, width - 2)
    return [waiting(first), *(Line("  ", dim(part)) for part in rest)]


def elided(lines: list[Line], room: int, first: int, advice: str = "") -> list[Line]:
    """At most `room` lines: where they are more, the `first` ones and the last; between them how many are left out.

    Of a traceback the end tells most.
    """
    if len(lines) <= room or room < 1:
        return lines[: max(0, room)]
    kept = max(0, min(first, room - 1 - min(_LAST_LINES, len(lines) - first)))
    rest = room - 1 - kept
    hidden = len(lines) - kept - rest
    return [*lines[:kept], Line(faint(f"  … {hidden:,} more lines{advice}")), *lines[len(lines) - rest :]]


def fact(label: str, value: Line, label_width: int = 10) -> Line:
    """A label and what it says, aligned with its neighbours."""
    return Line(dim(label)).fit(label_width) + value


def outcome_glyph(outcome: Outcome) -> str:
    """A shape for each outcome, so that none is told by colour alone."""
    return {
        Outcome.IN_FLIGHT: "▸",
        Outcome.IN_OUTBOX: "◔",
        Outcome.DELIVERED: "✓",
        Outcome.SKIPPED: "∅",
        Outcome.REJECTED: "−",
        Outcome.FAILED: "✗",
        Outcome.REFUSED: "!",
        Outcome.REQUEUED: "↻",
    }[outcome]


def short_reason(row: EndedRow) -> str:
    """The most telling word: the split of identical scores, else the reason, else the outcome."""
    if row.split in SPLIT_WORDS:
        return SPLIT_WORDS[ScoreSplit(row.split)]
    return formatting.words(visible(row.reason) or row.outcome)


def one_word_reason(row: EndedRow) -> str:
    """As `short_reason`, in at most nine cells for all reasons that there are."""
    if row.split in SPLIT_WORDS:
        return short_reason(row)
    return _ONE_WORD.get(row.reason) or short_reason(row)


def item_preview(item: str, room: int) -> str:
    """Items are mostly dicts that all begin alike: where there is no room for all of it, the first value alone."""
    found = _FIRST_VALUE.match(item) if room < len(item) else None
    return found["value"].strip("'\"") if found else item


def score_words(scores: tuple[float, ...]) -> Line:
    """`1.00 ×8` for equal scores, else lowest to highest."""
    if not scores:
        return Line(faint("–"))
    if min(scores) == max(scores):
        return Line(formatting.score(scores[0]), dim(f" ×{len(scores)}"))
    return Line(formatting.score(min(scores)), dim("–"), formatting.score(max(scores)))
