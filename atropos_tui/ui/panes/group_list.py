"""The list of groups that ended, newest first, filtered by outcome."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import OPEN_OUTCOMES, Outcome
from atropos_tui.monitor.snapshot import EndedRow, GroupPage
from atropos_tui.ui import formatting
from atropos_tui.ui.filter_language import Filter
from atropos_tui.ui.ink import Ink, Line, Span, clip, dim, faint, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import OUTCOME_INKS, outcome_glyph, score_words, short_reason, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.table import Column, Table

ENDED_OUTCOMES = tuple(outcome for outcome in Outcome if outcome not in OPEN_OUTCOMES)

_COLUMNS = (
    Column("group", 5, right=True),
    Column("", 1),
    Column("scores", 10),
    Column("item", 10, grows=True),
    Column("tokens", 6, right=True, rank=3),
    Column("step", 5, right=True, rank=2),
    Column("age", 4, right=True, rank=1),
)


class GroupListPane(Pane):
    """Holds the rows loaded so far; the screen loads more when the cursor nears the end."""

    title = "Groups"

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[EndedRow] = []
        self.filter = Filter()
        self.older_than: int | None = None
        self.failure = ""
        self._total = 0
        self._ended_when_loaded: int | None = None

    @property
    def rows(self) -> int:
        return len(self.groups)

    @property
    def selected(self) -> EndedRow | None:
        return self.groups[self.cursor] if self.groups else None

    @property
    def newer(self) -> int:
        """How many groups ended since the list was loaded (of the filter's outcome, where it has one)."""
        return 0 if self._ended_when_loaded is None else max(0, self._ended - self._ended_when_loaded)

    @property
    def wants_more(self) -> bool:
        """Whether the cursor is so near to the end that the next page should be loaded."""
        return self.older_than is not None and self.cursor > self.rows - self.size.height

    def start(self, page: GroupPage) -> None:
        """The newest groups that the filter lets through."""
        self.groups = list(page.rows)
        self._ended_when_loaded = self._ended
        self._take(page)

    def extend(self, page: GroupPage) -> None:
        """The groups after those there are."""
        self.groups.extend(page.rows)
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
        if not self.filter.text:
            return Line(dim("all "), strong(formatting.count(self._total)))
        more = "+" if self.older_than is not None else ""
        found = Line(strong(f"{formatting.count(self.rows)}{more}"))
        return Line(Span(clip(visible(self.filter.text), room - found.width - 1), Ink.ACCENT), " ") + found

    def body(self, width: int, height: int) -> list[Line]:
        if self.failure:
            return [Line(Span(visible(self.failure), Ink.BAD))]
        if not self.groups:
            return [waiting("no group is like that" if self.filter.text else "no group has ended yet")]
        head = [Line(Span("↑ ", Ink.ACCENT), dim(f"{self.newer} newer, g at the top loads them"))] if self.newer else []
        table = Table(_COLUMNS, self.rows, self._row, cursor=self.cursor)
        return head + table.lines(width, height - len(head))

    @property
    def _ended(self) -> int:
        by_outcome = self.moment.snapshot.ledger.by_outcome
        counted = [self.filter.outcome] if self.filter.outcome else ENDED_OUTCOMES
        return sum(by_outcome.get(outcome, 0) for outcome in counted)

    def _take(self, page: GroupPage) -> None:
        self._total = page.total
        self.older_than = page.older_than
        self.failure = ""
        self.cursor = max(0, min(self.cursor, self.rows - 1))
        self.redraw()

    def _row(self, index: int) -> tuple[Line, ...]:
        row = self.groups[index]
        ink = OUTCOME_INKS[row.outcome]
        tokens = round(sum(row.completion_tokens) / len(row.completion_tokens)) if row.completion_tokens else None
        return (
            Line(dim(str(row.group_id))),
            Line(Span(outcome_glyph(row.outcome), ink)),
            score_words(row.scores),
            _item_and_reason(row),
            Line(faint("–")) if tokens is None else Line(dim(formatting.short_count(tokens))),
            Line(dim(formatting.count(row.step))),
            Line(dim(formatting.age(self.moment.since(row.at)))),
        )


def _item_and_reason(row: EndedRow) -> Line:
    """Why a group did not reach the trainer comes first, as the column may be short."""
    if row.outcome is Outcome.DELIVERED:
        return Line(visible(row.item))
    return Line(Span(short_reason(row), OUTCOME_INKS[row.outcome]), faint(" · "), dim(visible(row.item)))
