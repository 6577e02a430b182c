"""The list of groups that ended, filtered and in the order that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from atropos_tui.ledger.outcomes import OPEN_OUTCOMES, Outcome
from atropos_tui.monitor.group_detail import GroupPage
from atropos_tui.monitor.group_filter import Term
from atropos_tui.monitor.group_query import ORDERS
from atropos_tui.monitor.notes import Notes
from atropos_tui.monitor.snapshot import EndedRow
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, clip, dim, faint, strong
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
from atropos_tui.ui.widgets.table import Cell, Column, Table

ENDED_OUTCOMES = tuple(outcome for outcome in Outcome if outcome not in OPEN_OUTCOMES)
NEWEST_FIRST = "-time"
# The best and the longest are looked for first, but the trouble before what went well.
_FIRST = {"time": "-time", "score": "score", "len": "-len", "step": "-step", "took": "-took"}
_TITLES = {"scores": "score", "len": "len", "step": "step", "took": "took", "why": "reason", "age": "time"}

_NARROW = (
    Column("group", 5, right=True),
    Column("", 1),
    Column("", 1),
    Column("scores", 10),
    Column("item", 8, grows=True),
    Column("len", 4, right=True, rank=2),
    Column("step", 5, right=True, rank=3),
    Column("age", 4, right=True, rank=1),
)
_WIDE = (
    *_NARROW[:4],
    Column("why", 18),
    *_NARROW[4:7],
    Column("took", 5, right=True),
    Column("weights", 7, right=True),
    Column("ends", 12),
    _NARROW[7],
)
_WIDE_FROM = 96
# Cells; of less of an item nobody knows which it is.
_LEAST_OF_ITEM = 5


class GroupListPane(Pane):
    """Holds the rows loaded so far; the screen loads more when the cursor nears the end."""

    title = "Groups"

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.groups: list[EndedRow] = []
        self.filter = ""
        self.terms: Sequence[Term] = ()
        self.order = NEWEST_FIRST
        self.older_than: int | None = None
        self.failure = ""
        self.exporting = ""
        self._notes = notes
        self._total = 0
        self._ended_when_loaded: int | None = None

    @property
    def rows(self) -> int:
        return len(self.groups)

    @property
    def selected(self) -> EndedRow | None:
        return self.groups[self.cursor] if self.groups else None

    @property
    def outcome(self) -> Outcome | None:
        """The one outcome that the filter is for, where it names one in full."""
        named = [term.word for term in self.terms if term.field == "outcome" and not term.negated]
        return Outcome(named[0]) if len(named) == 1 and named[0] in set(Outcome) else None

    @property
    def newer(self) -> int:
        """How many groups ended since the list was loaded (of the filter's outcome, where it has one)."""
        return 0 if self._ended_when_loaded is None else max(0, self._ended - self._ended_when_loaded)

    @property
    def wants_more(self) -> bool:
        """Whether the cursor is so near to the end that the next page should be loaded."""
        return self.older_than is not None and self.cursor > self.rows - self.size.height

    def filter_by(self, text: str, terms: Sequence[Term]) -> None:
        self.filter, self.terms, self.cursor = text, terms, 0

    def next_order(self) -> None:
        name = self.order.removeprefix("-")
        following = ORDERS[(ORDERS.index(name) + 1) % len(ORDERS)]
        self.order, self.cursor = _FIRST.get(following, following), 0

    def reverse_order(self) -> None:
        falls = self.order.startswith("-")
        self.order, self.cursor = self.order.removeprefix("-") if falls else f"-{self.order}", 0

    def start(self, page: GroupPage) -> None:
        """The first groups of the filter, in its order."""
        self.groups = list(page.rows)
        self._ended_when_loaded = self._ended
        self._take(page)

    def extend(self, page: GroupPage) -> None:
        """The groups after those there are. In orders other than that of time they move while the run goes on."""
        known = {row.group_id for row in self.groups}
        self.groups.extend(row for row in page.rows if row.group_id not in known)
        self._take(page)

    def fail(self, why: str) -> None:
        """The list could not be loaded."""
        self.groups, self.failure = [], why
        self.redraw()

    def select(self, group_id: int) -> None:
        """Put the cursor on a group, if it is among those loaded."""
        self.cursor = next((i for i, row in enumerate(self.groups) if row.group_id == group_id), self.cursor)
        self.redraw()

    def numbers(self, room: int) -> Line:
        found = Line(strong(formatting.count(self._total)))
        if self.order != NEWEST_FIRST:
            found += Line(dim(f" by {_order_words(self.order)}"))
        if not self.filter:
            return Line(dim("all ")) + found
        return Line(Span(clip(visible(self.filter), room - found.width - 1), Ink.ACCENT), " ") + found

    def body(self, width: int, height: int) -> list[Line]:
        if self.failure:
            return [Line(Span(visible(self.failure), Ink.BAD))]
        head = [Line(Span(self.exporting, Ink.ACCENT))] if self.exporting else []
        if not self.groups:
            return [*head, waiting("no group is like that" if self.filter else "no group has ended yet")]
        if self.newer:
            head.append(Line(Span("↑ ", Ink.ACCENT), dim(f"{self.newer} newer, g at the top loads them")))
        columns = _WIDE if width >= _WIDE_FROM else _NARROW
        shown = [_with_arrow(column, self.order) for column in columns]
        gap = 1 if columns is _NARROW else 2
        beyond = max(0, self._total - self.rows)
        table = Table(
            shown, self.rows, lambda index: self._row(index, columns), cursor=self.cursor, gap=gap, beyond=beyond
        )
        return head + table.lines(width, height - len(head))

    @property
    def _ended(self) -> int:
        by_outcome = self.moment.snapshot.ledger.by_outcome
        outcome = self.outcome
        return sum(by_outcome.get(counted, 0) for counted in ([outcome] if outcome else ENDED_OUTCOMES))

    def _take(self, page: GroupPage) -> None:
        self._total = page.total
        self.older_than = page.older_than
        self.failure = ""
        self.cursor = max(0, min(self.cursor, self.rows - 1))
        self.redraw()

    def _row(self, index: int, columns: Sequence[Column]) -> Sequence[Cell]:
        row = self.groups[index]
        tokens = round(fmean(row.completion_tokens)) if row.completion_tokens else None
        wide = columns is _WIDE
        cells: dict[str, Cell] = {
            "group": Line(dim(str(row.group_id))),
            "scores": score_words(row.scores),
            "why": Line(Span(short_reason(row), OUTCOME_INKS[row.outcome])),
            "item": Line(visible(row.item)) if wide else _item_and_reason(row),
            "len": Line(faint("–")) if tokens is None else Line(dim(formatting.short_count(tokens))),
            "step": Line(dim(formatting.count(row.step))),
            "took": Line(dim(formatting.duration(row.seconds))),
            "weights": Line(faint("–") if row.weight_version is None else dim(str(row.weight_version))),
            "ends": Line(dim(visible(", ".join(row.finishes)))),
            "age": Line(dim(formatting.age(self.moment.since(row.at)))),
        }
        marks = iter((Line(Span(outcome_glyph(row.outcome), OUTCOME_INKS[row.outcome])), self._mark(row)))
        return [cells[column.title] if column.title else next(marks) for column in columns]

    def _mark(self, row: EndedRow) -> Line:
        note = self._notes[row.group_id]
        if note.bookmarked:
            return Line(Span("◆", Ink.WARN))
        return Line(Span("¶", Ink.WARN)) if note.text else Line()


def _with_arrow(column: Column, order: str) -> Column:
    """The column by which the list is ordered says so."""
    if _TITLES.get(column.title) != order.removeprefix("-") or column.title == "age":
        return column
    arrow = "↓" if order.startswith("-") else "↑"
    apart = " " if len(column.title) + 2 <= column.width else ""
    return column._replace(title=f"{column.title}{apart}{arrow}")


def _order_words(order: str) -> str:
    """`score ↑` for the lowest first."""
    return f"{order.removeprefix('-')} {'↓' if order.startswith('-') else '↑'}"


def _item_and_reason(row: EndedRow) -> Cell:
    """Why a group did not reach the trainer comes first, as the column may be short."""
    if row.outcome is Outcome.DELIVERED:
        return lambda width: Line(visible(item_preview(row.item, width))).fit(width)
    reason = Line(Span(one_word_reason(row), OUTCOME_INKS[row.outcome]))

    def draw(width: int) -> Line:
        room = width - reason.width - 3
        item = Line(faint(" · "), dim(visible(item_preview(row.item, room)))) if room >= _LEAST_OF_ITEM else Line()
        return (reason + item).fit(width)

    return draw
