"""The rollout queue: what is in flight, what waits, and why no further group starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar

from textual.binding import BindingType

from atropos_tui.ledger.outcomes import RunState, Stage, ThrottleReason
from atropos_tui.monitor.snapshot import InFlightRow, QueueSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join, join_that_fit, strong
from atropos_tui.ui.keys import Scope, bindings
from atropos_tui.ui.moment import AT_WORK
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, item_preview, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import gauge
from atropos_tui.ui.widgets.table import Cell, Column, Table

_STRAGGLER_SECONDS = 60.0
_GAUGE_WIDTH = 5

# At these limits nothing is wrong: the environment simply does as much as it may.
_NORMAL_THROTTLES = frozenset({ThrottleReason.MAX_NUM_WORKERS, ThrottleReason.PAUSED, ThrottleReason.EVAL})
# The others say what is missing rather than what holds.
_LIMITS = frozenset({ThrottleReason.MAX_NUM_WORKERS, ThrottleReason.OFF_POLICY_LIMIT})

_STAGE_WORDS: dict[str, str] = {Stage.POSTPROCESSING: "postproc."}

_NARROW = 50
# The whole of a middle-sized screen.
_ROOM_FOR_DETAILS = 26
_DETAIL_LABEL = 14


class Order(StrEnum):
    """The values follow `… first`."""

    LONGEST = "longest in flight"
    LEAST_DONE = "fewest done"
    TOKENS = "most tokens"
    NEWEST = "newest"


_ORDERS: dict[Order, Callable[[InFlightRow], float]] = {
    Order.LONGEST: lambda row: row.started_at,
    Order.LEAST_DONE: lambda row: row.rollouts_done / max(1, row.rollouts),
    Order.TOKENS: lambda row: -row.completion_tokens,
    Order.NEWEST: lambda row: -row.started_at,
}


def _columns(width: int) -> tuple[Column, ...]:
    """On narrow screens the item gives way before the age does."""
    return (
        Column("group", 5, right=True),
        Column("item", 11 if width < _NARROW else 16, grows=True),
        Column("stage", 10, rank=2),
        Column("done", _GAUGE_WIDTH + 5),
        Column("tokens", 6, right=True, rank=3),
        Column("calls", 5, right=True, rank=4),
        Column("server", 6, right=True, rank=5),
        Column("age", 4, right=True),
    )


class QueuePane(Pane):
    """The groups stand longest in flight first, which is how they come, or in another order."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.QUEUE)
    number = 1
    title = "Rollout queue"

    def __init__(self) -> None:
        super().__init__()
        self.order = Order.LONGEST
        self._sorted: tuple[tuple[InFlightRow, ...], Order, list[InFlightRow]] = ((), self.order, [])

    @property
    def queue(self) -> QueueSection:
        return self.moment.snapshot.queue

    @property
    def groups(self) -> list[InFlightRow]:
        """Those in flight, in the order that is asked for."""
        of, order, groups = self._sorted
        if of is not self.queue.rows or order is not self.order:
            groups = sorted(self.queue.rows, key=_ORDERS[self.order])
            self._sorted = (self.queue.rows, self.order, groups)
        return groups

    @property
    def rows(self) -> int:
        return len(self.queue.rows)

    @property
    def group(self) -> InFlightRow | None:
        """The one under the cursor."""
        return self.groups[self.cursor] if self.cursor < self.rows else None

    def row_key(self, index: int) -> int:
        return self.groups[index].group_id

    def next_order(self) -> None:
        orders = list(Order)
        self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        self.cursor = 0
        self.redraw()

    def numbers(self, room: int) -> Line:
        del room
        # A limit that fell below what is in flight is no denominator.
        limit = f"/{self.queue.limit}" if self.queue.limit >= max(1, self.queue.in_flight) else ""
        return Line(strong(str(self.queue.in_flight)), dim(f"{limit} in flight"))

    def body(self, width: int, height: int) -> list[Line]:
        roomy = height >= 12
        head = [*self._throttle(width, most=2 if roomy else 1), self._waiting_line(width)]
        if not self.queue.rows:
            return [*head, Line(), waiting(self._why_empty()), *self.reason_for_waiting(width)]
        if roomy:
            head.append(self._order_line(width) if self.zoomed or self.order is not Order.LONGEST else Line())
        foot = self._details(width) if self.zoomed and height >= _ROOM_FOR_DETAILS else []
        gap = 1 if width < _NARROW else 2
        columns, beyond = _columns(width), self.queue.in_flight - self.rows
        table = Table(columns, self.rows, self._row, cursor=self.shown_cursor, gap=gap, beyond=beyond)
        room = height - len(head) - len(foot)
        lines = table.lines(width, room)
        return head + lines + [Line()] * (room - len(lines)) + foot if foot else head + lines

    def _order_line(self, width: int) -> Line:
        """How many groups are in which stage, and the order when it is not the usual one."""
        stages = Counter(row.stage for row in self.queue.rows)
        parts = [Line(str(many), dim(f" {stage}")) for stage, many in stages.most_common()]
        if self.rows < self.queue.in_flight:
            parts.append(Line(dim(f"of the {self.rows} longest in flight")))
        if self.order is not Order.LONGEST:
            parts.insert(0, Line(Span(f"{self.order} first", Ink.ACCENT)))
        return join_that_fit(parts, width, " · ")

    def _details(self, width: int) -> list[Line]:
        """The group under the cursor in full."""
        row = self.group
        if row is None:
            return []
        servers = {server.server: server for server in self.moment.snapshot.inference.servers}
        parts = [
            Line(dim("in flight for "), formatting.age(self.moment.since(row.started_at))),
            Line(row.stage),
            Line(f"{row.rollouts_done} of {row.rollouts}", dim(" rollouts done")),
            Line(formatting.count(row.completion_tokens), dim(" tokens")),
            Line(formatting.plural(row.calls, "call")),
        ]
        lines = [
            Line(faint("─" * width)),
            fact(f"group {row.group_id}", Line(visible(row.item)), _DETAIL_LABEL).fit(width),
            fact("", join_that_fit(parts, width - _DETAIL_LABEL, " · "), _DETAIL_LABEL),
        ]
        if (server := servers.get(row.server)) is not None:
            health = "" if server.healthy is not False else f"  {server.detail or 'unhealthy'}"
            last = Line(dim(f"last call to {server.server} "), visible(server.url), Span(visible(health), Ink.BAD))
            lines.append(fact("", last, _DETAIL_LABEL).fit(width))
        return lines

    def _throttle(self, width: int, most: int) -> list[Line]:
        """The reason why no further group starts, with its numbers; in at most so many lines."""
        queue, state = self.queue, self.moment.snapshot.run.state
        if state not in AT_WORK:
            return [Line(Span("‖ ", Ink.DIM), dim(f"no group starts: {state}"))]
        if not queue.throttle:
            return [Line(Span("▸ ", Ink.GOOD), dim("groups start as items come"))]
        ink = Ink.TEXT if queue.throttle in _NORMAL_THROTTLES else Ink.WARN
        reason = formatting.words(queue.throttle)
        detail = visible(queue.throttle_detail) if queue.throttle_detail != queue.throttle else ""
        mark, held_by = Span("‖ ", ink), dim("held by " if queue.throttle in _LIMITS else "")
        line = Line(mark, held_by, Span(reason, ink), dim(f" · {detail}" if detail else ""))
        if line.width <= width:
            return [line]
        if most == 1:
            return [Line(mark, Span(reason, ink), dim(f" · {detail}"))]
        return [Line(mark, held_by, Span(reason, ink)), Line(dim(f"  {detail}"))]

    def _waiting_line(self, width: int) -> Line:
        queue = self.queue
        parts = [Line(dim("backlog "), formatting.count(queue.backlog)), self._trainer_queue()]
        if queue.groups_per_second:
            parts.append(Line(formatting.rate(queue.groups_per_second), dim(" groups")))
            parts.append(Line(formatting.rate(queue.rollouts_per_second), dim(" rollouts")))
        return join_that_fit(parts, width, " · ")

    def _trainer_queue(self) -> Line:
        queue = self.queue
        label = Line(dim("trainer queue "))
        if queue.trainer_queue_limit < 0:
            return label + Line(formatting.count(queue.trainer_queue))
        full = queue.trainer_queue >= queue.trainer_queue_limit
        of = f"{formatting.count(queue.trainer_queue)}/{formatting.count(queue.trainer_queue_limit)}"
        return label + Line(Span(of, Ink.WARN if full else Ink.TEXT))

    def _row(self, index: int) -> tuple[Cell, ...]:
        row = self.groups[index]
        elapsed = self.moment.since(row.started_at)
        late = elapsed >= _STRAGGLER_SECONDS
        done = join(
            (
                gauge(row.rollouts_done, row.rollouts, _GAUGE_WIDTH),
                Line(dim(f"{row.rollouts_done}/{row.rollouts}")),
            ),
            " ",
        )
        return (
            Line(dim(str(row.group_id))),
            lambda width: Line(visible(item_preview(row.item, width))).fit(width),
            Line(dim(_STAGE_WORDS.get(row.stage, row.stage))),
            done,
            Line(dim(formatting.short_count(row.completion_tokens))),
            Line(dim(str(row.calls))),
            Line(dim(str(row.server))) if row.server >= 0 else Line(faint("–")),
            Line(Span(formatting.age(elapsed), Ink.WARN if late else Ink.TEXT)),
        )

    def _why_empty(self) -> str:
        run = self.moment.snapshot.run
        if self.moment.ended:
            return "ended; nothing is in flight"
        if run.state is RunState.PAUSED:
            return "paused; nothing is in flight"
        return "nothing is in flight"
