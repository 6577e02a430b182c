"""Groups that ended without reaching the trainer: by reason, too easy against too hard, and the newest ones."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import OPEN_OUTCOMES, Outcome
from atropos_tui.monitor.snapshot import SkippedSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import (
    OUTCOME_INKS,
    item_preview,
    one_word_reason,
    outcome_glyph,
    score_words,
    short_reason,
    waiting,
)
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import bar, split_bar
from atropos_tui.ui.widgets.table import Cell, Column, Table

_LONG_ROW = 5

_REASON_COLUMNS = (
    Column("", 1),
    Column("reason", 20),
    Column("", 4, grows=True, rank=1),
    Column("/min", 5, right=True),
    Column("total", 6, right=True),
)
_ZOOMED_REASON_COLUMNS = (
    Column("", 1),
    Column("reason", 20),
    Column("outcome", 8, rank=2),
    Column("", 4, grows=True, rank=3),
    Column("/min", 6, right=True),
    Column("/10 min", 7, right=True, rank=1),
    Column("total", 7, right=True),
    Column("of ended", 8, right=True, rank=1),
)
_ZOOMED_RECENT_COLUMNS = (
    Column("group", 6, right=True),
    Column("why", 16),
    Column("scores", 9, rank=2),
    Column("tokens", 6, right=True, rank=3),
    Column("step", 6, right=True, rank=4),
    Column("took", 5, right=True, rank=5),
    Column("item", 12, grows=True, rank=1),
    Column("error", 20, grows=True, rank=6),
    Column("age", 4, right=True),
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

    def row_key(self, index: int) -> int:
        return self.skipped.recent[index].group_id

    @property
    def group_id(self) -> int | None:
        return self.skipped.recent[self.cursor].group_id if self.skipped.recent else None

    def numbers(self, room: int) -> Line:
        skipped = self.skipped
        if not skipped.total:
            return Line()
        share = skipped.last_minute / skipped.ended_last_minute if skipped.ended_last_minute else 0.0
        of = f"{formatting.count(skipped.last_minute)} of {formatting.count(skipped.ended_last_minute)}"
        percent = strong(formatting.percent(share))
        with_counts = Line(percent, dim(f" · {of}"))
        if with_counts.width > room:
            return Line(percent)
        return join_that_fit((with_counts, Line(dim("in the last minute"))), room, " ")

    def body(self, width: int, height: int) -> list[Line]:
        if not self.skipped.total:
            if self.moment.snapshot.ledger.by_outcome.get(Outcome.DELIVERED):
                return [waiting("none: every group that ended went to the trainer")]
            return [waiting("no group has ended yet"), *self.reason_for_waiting(width)]
        roomy = height >= 12
        reasons = self._reasons(width, min(len(self.skipped.reasons) + 1, max(4, height * 9 // 20)))
        air = [Line()] if roomy else []
        head = [*reasons, *air, *self._zero_advantage(width), *air]
        gap = 2 if roomy else 1
        if self.zoomed:
            head = [self._denominators(width), *head]
            recent = Table(_ZOOMED_RECENT_COLUMNS, self.rows, self._zoomed_recent_row, self.shown_cursor)
        else:
            recent = Table(_RECENT_COLUMNS, self.rows, self._recent_row, self.shown_cursor, gap, with_head=roomy)
        return head + recent.lines(width, height - len(head))

    def _reasons(self, width: int, height: int) -> list[Line]:
        many = len(self.skipped.reasons)
        if self.zoomed:
            return Table(_ZOOMED_REASON_COLUMNS, many, self._zoomed_reason_row).lines(width, height)
        return Table(_REASON_COLUMNS, many, self._reason_row, gap=1).lines(width, height)

    @property
    def _ended(self) -> int:
        """All groups that ended, save those whose item comes again."""
        counts = self.moment.snapshot.ledger.by_outcome
        return sum(many for outcome, many in counts.items() if outcome not in (*OPEN_OUTCOMES, Outcome.REQUEUED))

    def _denominators(self, width: int) -> Line:
        skipped = self.skipped

        def share(some: int, of: int, when: str) -> Line:
            return Line(formatting.count(some), dim(f" of {formatting.count(of)} {when}"))

        parts = [
            share(skipped.total, self._ended, "groups that ended did not reach the trainer"),
            share(skipped.last_ten_minutes, skipped.ended_last_ten_minutes, "in the last 10 minutes"),
            share(skipped.last_minute, skipped.ended_last_minute, "in the last minute"),
        ]
        return join_that_fit(parts, width, " · ")

    def _zoomed_reason_row(self, index: int) -> tuple[Cell, ...]:
        reason = self.skipped.reasons[index]
        glyph, name, drawn, minute, total = self._reason_row(index)
        ten = Line(str(reason.last_ten_minutes)) if reason.last_ten_minutes else Line(faint("·"))
        share = Line(dim(formatting.percent(reason.count / max(1, self._ended))))
        return glyph, name, Line(dim(reason.outcome)), drawn, minute, ten, total, share

    def _reason_row(self, index: int) -> tuple[Cell, ...]:
        reason = self.skipped.reasons[index]
        most = max(other.count for other in self.skipped.reasons)
        ink = OUTCOME_INKS[reason.outcome]
        return (
            Line(Span(outcome_glyph(reason.outcome), ink)),
            Line(formatting.words(visible(reason.reason))),
            bar(reason.count / max(1, most), Ink.CHART if reason.outcome is Outcome.SKIPPED else ink),
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

    def _zoomed_recent_row(self, index: int) -> tuple[Cell, ...]:
        row = self.skipped.recent[index]
        group, _, scores, item, age = self._recent_row(index)
        tokens = sum(row.completion_tokens) / max(1, len(row.completion_tokens))
        return (
            group,
            Line(Span(short_reason(row), OUTCOME_INKS[row.outcome])),
            scores,
            Line(formatting.short_count(tokens)) if row.completion_tokens else Line(faint("–")),
            Line(dim(formatting.count(row.step))),
            Line(dim(formatting.duration(row.seconds))),
            item,
            Line(dim(visible(row.error))),
            age,
        )

    def _recent_row(self, index: int) -> tuple[Cell, ...]:
        row = self.skipped.recent[index]
        return (
            Line(dim(str(row.group_id))),
            Line(Span(one_word_reason(row), OUTCOME_INKS[row.outcome])),
            score_words(row.scores),
            lambda width: Line(visible(item_preview(row.item, width))).fit(width),
            Line(dim(formatting.age(self.moment.since(row.at)))),
        )
