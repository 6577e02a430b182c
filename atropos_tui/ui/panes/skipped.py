"""Groups that ended without reaching the trainer: by reason, too easy against too hard, and the newest ones."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import Outcome, ScoreSplit
from atropos_tui.monitor.snapshot import EndedRow, ReasonCount, SkippedSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.panes.pane import Pane, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import bar, split_bar
from atropos_tui.ui.widgets.table import Cell, Column, Table

SPLIT_WORDS = {ScoreSplit.ALL_BEST: "too easy", ScoreSplit.ALL_WORST: "too hard", ScoreSplit.ALL_EQUAL: "all equal"}
OUTCOME_INKS = {
    Outcome.DELIVERED: Ink.GOOD,
    Outcome.SKIPPED: Ink.DIM,
    Outcome.REJECTED: Ink.WARN,
    Outcome.FAILED: Ink.BAD,
    Outcome.REFUSED: Ink.BAD,
    Outcome.REQUEUED: Ink.DIM,
}
_LONG_ROW = 5

_REASON_COLUMNS = (
    Column("", 1),
    Column("reason", 20),
    Column("", 4, grows=True, rank=1),
    Column("/min", 5, right=True),
    Column("total", 6, right=True),
)
_RECENT_COLUMNS = (
    Column("group", 6, right=True),
    Column("why", 9),
    Column("scores", 9, rank=2),
    Column("item", 8, grows=True, rank=1),
    Column("age", 4, right=True),
)


class SkippedPane(Pane):
    number = 3
    title = "Skipped groups"

    @property
    def skipped(self) -> SkippedSection:
        return self.moment.snapshot.skipped

    @property
    def rows(self) -> int:
        return len(self.skipped.recent)

    @property
    def group_id(self) -> int | None:
        return self.skipped.recent[self.cursor].group_id if self.skipped.recent else None

    def numbers(self, room: int) -> Line:
        skipped = self.skipped
        if not skipped.total:
            return Line()
        share = skipped.last_minute / skipped.ended_last_minute if skipped.ended_last_minute else 0.0
        of = f"{skipped.last_minute} of {skipped.ended_last_minute}"
        parts = (Line(strong(formatting.percent(share)), dim(f" · {of}")), Line(dim("in the last minute")))
        return join_that_fit(parts, room, " ")

    def body(self, width: int, height: int) -> list[Line]:
        if not self.skipped.total:
            if self.moment.snapshot.ledger.by_outcome.get(Outcome.DELIVERED):
                return [waiting("none: every group that ended went to the trainer")]
            return [waiting("no group has ended yet"), *self.reason_for_waiting(width)]
        roomy = height >= 12
        reasons = self._reasons(width, min(len(self.skipped.reasons) + 1, max(4, height * 9 // 20)))
        air = [Line()] if roomy else []
        head = [*reasons, *air, *self._zero_advantage(width), *air]
        rows = [self._recent_row(row) for row in self.skipped.recent]
        recent = Table(_RECENT_COLUMNS, rows, self.shown_cursor, gap=2 if roomy else 1, with_head=roomy)
        return head + recent.lines(width, height - len(head))

    def _reasons(self, width: int, height: int) -> list[Line]:
        most = max((reason.count for reason in self.skipped.reasons), default=1)
        rows = [self._reason_row(reason, most) for reason in self.skipped.reasons]
        return Table(_REASON_COLUMNS, rows, gap=1).lines(width, height)

    def _reason_row(self, reason: ReasonCount, most: int) -> tuple[Cell, ...]:
        ink = OUTCOME_INKS[reason.outcome]
        return (
            Line(Span(outcome_glyph(reason.outcome), ink)),
            Line(formatting.words(visible(reason.reason))),
            bar(reason.count / most, Ink.CHART if reason.outcome is Outcome.SKIPPED else ink),
            Line(str(reason.last_minute)) if reason.last_minute else Line(faint("·")),
            Line(formatting.count(reason.count)),
        )

    def _zero_advantage(self, width: int) -> list[Line]:
        """How the groups with identical scores divide into too easy, too hard and others."""
        skipped = self.skipped
        total = skipped.all_best + skipped.all_worst + skipped.all_equal
        if not total:
            return []
        parts = (
            (skipped.all_best, Ink.GOOD, "too easy"),
            (skipped.all_worst, Ink.BAD, "too hard"),
            (skipped.all_equal, Ink.DIM, "other"),
        )
        words = [
            Line(Span("■ ", ink), f"{formatting.percent(many / total)} ", dim(word))
            for many, ink, word in parts
            if many
        ]
        if skipped.in_a_row > 1:
            in_a_row = Ink.WARN if skipped.in_a_row >= _LONG_ROW else Ink.TEXT
            words.append(Line(Span(str(skipped.in_a_row), in_a_row), dim(" in a row")))
        text = join_that_fit(words, width, "  ")
        spare = width - text.width - 2
        if spare < 8:
            return [text]
        return [text + Line("  ") + split_bar([(many, ink) for many, ink, _ in parts], spare)]

    def _recent_row(self, row: EndedRow) -> tuple[Line, ...]:
        return (
            Line(dim(str(row.group_id))),
            Line(Span(short_reason(row), OUTCOME_INKS[row.outcome])),
            score_words(row.scores),
            Line(visible(row.item)),
            Line(dim(formatting.age(self.moment.since(row.at)))),
        )


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


def score_words(scores: tuple[float, ...]) -> Line:
    """`1.00 ×8` for equal scores, else lowest to highest."""
    if not scores:
        return Line(faint("–"))
    if min(scores) == max(scores):
        return Line(formatting.score(scores[0]), dim(f" ×{len(scores)}"))
    return Line(formatting.score(min(scores)), dim("–"), formatting.score(max(scores)))
