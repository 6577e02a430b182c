"""The rollout queue: what is in flight, what waits, and why no further group starts."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import RunState, Stage, ThrottleReason
from atropos_tui.monitor.snapshot import QueueSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join, join_that_fit, strong
from atropos_tui.ui.moment import AT_WORK
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import gauge
from atropos_tui.ui.widgets.table import Column, Table

_STRAGGLER_SECONDS = 60.0
_GAUGE_WIDTH = 5

# At these limits nothing is wrong: the environment simply does as much as it may.
_NORMAL_THROTTLES = frozenset({ThrottleReason.MAX_NUM_WORKERS, ThrottleReason.PAUSED, ThrottleReason.EVAL})

_STAGE_WORDS: dict[str, str] = {Stage.POSTPROCESSING: "postproc."}

_NARROW = 50


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
    number = 1
    title = "Rollout queue"

    @property
    def queue(self) -> QueueSection:
        return self.moment.snapshot.queue

    @property
    def rows(self) -> int:
        return len(self.queue.rows)

    def row_key(self, index: int) -> int:
        return self.queue.rows[index].group_id

    def numbers(self, room: int) -> Line:
        del room
        limit = f"/{self.queue.limit}" if self.queue.limit > 0 else ""
        return Line(strong(str(self.queue.in_flight)), dim(f"{limit} in flight"))

    def body(self, width: int, height: int) -> list[Line]:
        roomy = height >= 12
        head = [*self._throttle(width, most=2 if roomy else 1), self._waiting_line(width)]
        if not self.queue.rows:
            return [*head, Line(), waiting(self._why_empty())]
        if roomy:
            head.append(Line())
        gap = 1 if width < _NARROW else 2
        table = Table(_columns(width), self.rows, self._row, cursor=self.shown_cursor, gap=gap)
        return head + table.lines(width, height - len(head))

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
        mark, held_by = Span("‖ ", ink), dim("held by ")
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
        return label + Line(Span(f"{queue.trainer_queue}/{queue.trainer_queue_limit}", Ink.WARN if full else Ink.TEXT))

    def _row(self, index: int) -> tuple[Line, ...]:
        row = self.queue.rows[index]
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
            Line(visible(row.item)),
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
            return "the run has ended; nothing is in flight"
        if run.state is RunState.PAUSED:
            return "paused; nothing is in flight"
        return self.moment.waits_for or "nothing is in flight"
