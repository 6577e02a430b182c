"""Evaluations over steps: one metric after the other as a chart, all as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from atropos_tui.monitor.snapshot import EvalRow, EvalsSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, clip_middle, dim, faint, join, join_that_fit, spread, strong
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import elided, waiting
from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.widgets.trend import GUTTER, Sample, trend
from atropos_tui.ui.wrapping import wrapped

_GRID_GAP = 4
_WIDEST_HEAD = 20


class EvalsPane(Pane):
    title = "Evaluations"

    def __init__(self) -> None:
        super().__init__()
        self._metric = ""

    @property
    def evals(self) -> EvalsSection:
        return self.moment.snapshot.evals

    @property
    def rows(self) -> int:
        return len(self.evals.rows)

    def row_key(self, index: int) -> float:
        return self.evals.rows[index].at

    def numbers(self, room: int) -> Line:
        del room
        evals = self.evals
        if not evals.running_since_at:
            return Line()
        since = formatting.age(self.moment.since(evals.running_since_at))
        return Line(Span("◆ ", Ink.ACCENT), dim(f"running for {since} at step "), formatting.count(evals.running_step))

    def body(self, width: int, height: int) -> list[Line]:
        if not self.evals.rows:
            return [waiting("no evaluation has ended yet; E starts one now"), *self.reason_for_waiting(width)]
        chart = self._chart(width, max(0, height // 2 - 3)) if height >= 14 else []
        details = self._details(width, max(1, (height - len(chart)) // 2))
        table = self._table().lines(width, height - len(chart) - len(details) - 1)
        return [*chart, *table, Line(), *details]

    @property
    def metric_names(self) -> list[str]:
        """Every metric that any evaluation gave, in order of first appearance, oldest evaluation first."""
        return list(dict.fromkeys(name for row in reversed(self.evals.rows) for name in row.metrics))

    @property
    def metric(self) -> str:
        """The one in the chart; empty where there is none."""
        names = self.metric_names
        return self._metric if self._metric in names else next(iter(names), "")

    @property
    def _from_metric_on(self) -> list[str]:
        """All of them, beginning with the one in the chart: there is not always room for all."""
        names = self.metric_names
        place = names.index(self.metric) if names else 0
        return names[place:] + names[:place]

    def next_metric(self, by: int) -> None:
        if names := self.metric_names:
            self._metric = names[(names.index(self.metric) + by) % len(names)]
            self.redraw()

    def _chart(self, width: int, height: int) -> list[Line]:
        """The metric over steps, with its numbers as text and the steps below."""
        metric = self.metric
        told = [(row.step, row.metrics[metric]) for row in reversed(self.evals.rows) if metric in row.metrics]
        told = [(step, value) for step, value in told if math.isfinite(value)]
        if not told:
            return []
        values = [value for _, value in told]
        bottom, top = min(values), max(values)
        if bottom >= 0 and top <= 1:
            bottom, top = 0.0, 1.0
        elif bottom == top:
            bottom, top = bottom - 1, top + 1
        samples = [Sample(step, value, value, value) for step, value in told]
        steps = spread(Line(dim(f"step {told[0][0]:,}")), Line(dim(f"step {told[-1][0]:,}")), width - GUTTER)
        return [
            self._chart_title(told, width),
            *trend(samples, width, height - 1, start=told[0][0], end=told[-1][0], bottom=bottom, top=top),
            Line(" " * GUTTER) + steps,
            Line(),
        ]

    def _chart_title(self, told: list[tuple[int, float]], width: int) -> Line:
        names = self.metric_names
        values = [value for _, value in told]
        parts = [
            Line(strong(visible(self.metric), Ink.ACCENT)),
            Line(dim("last "), formatting.score(values[-1])),
            Line(dim("first "), formatting.score(values[0])),
            Line(dim("lowest "), formatting.score(min(values))),
            Line(dim("highest "), formatting.score(max(values))),
        ]
        place = Line(dim(f"{names.index(self.metric) + 1} of {formatting.plural(len(names), 'metric')}"))
        return spread(join_that_fit(parts, width - place.width - 2, " · "), place, width)

    def _table(self) -> Table:
        names = self._from_metric_on
        heads = [visible(name[_shared_path(names) :]) for name in names]
        columns = [Column("step", 7, right=True), Column("age", 4, right=True), Column("took", 6, right=True)]
        columns += [
            Column(head, max(8, min(_WIDEST_HEAD, cell_len(head))), right=True, rank=rank)
            for rank, head in enumerate(heads)
        ]
        return Table(columns, self.rows, lambda index: self._row(self.evals.rows[index], names), cursor=self.cursor)

    def _row(self, row: EvalRow, names: list[str]) -> tuple[Line, ...]:
        metrics = [Line(formatting.score(row.metrics[name])) if name in row.metrics else Line("–") for name in names]
        if row.error and metrics:
            metrics[0] = Line(Span("✗ failed", Ink.BAD))
        return (
            Line(formatting.count(row.step)),
            Line(dim(formatting.age(self.moment.since(row.at)))),
            Line(dim(formatting.duration(row.seconds))),
            *metrics,
        )

    def _details(self, width: int, room: int) -> list[Line]:
        """Of the evaluation under the cursor: all metrics, beginning with the one in the chart, or why it failed."""
        row = self.evals.rows[self.cursor]
        if row.error:
            text = visible_lines(row.traceback.rstrip() or row.error)
            lines = [Line(Span(part, Ink.BAD)) for line in text for part in wrapped(line, width)]
            return elided(lines, room, 0)
        told = [(visible(name), f"{row.metrics[name]:.6g}") for name in self._from_metric_on if name in row.metrics]
        line = join((Line(dim(f"{name} "), value) for name, value in told), " · ")
        return [line] if line.width <= width else _grid(told, width, room)


def _shared_path(names: Sequence[str]) -> int:
    """The length of what all names begin with, such as `eval/`, up to its last slash; 0 where there is only one."""
    first, last = min(names, default=""), max(names, default="")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(character for character, _ in same).rfind("/") + 1 if len(names) > 1 else 0


def _grid(told: list[tuple[str, str]], width: int, room: int) -> list[Line]:
    """Names and values in columns, as many as there is room for."""
    value_width = max(len(value) for _, value in told)
    name_width = min(max(cell_len(name) for name, _ in told), width - value_width - 1)
    columns = max(1, (width + _GRID_GAP) // (name_width + value_width + 1 + _GRID_GAP))
    rows = min(room, -(-len(told) // columns))
    if hidden := max(0, len(told) - rows * columns):
        rows -= 1
        hidden = len(told) - rows * columns
    cells = [
        Line(dim(clip_middle(name, name_width))).fit(name_width + 1) + Line(value).fit_right(value_width)
        for name, value in told[: rows * columns]
    ]
    lines = [join(cells[row::rows], " " * _GRID_GAP) for row in range(rows)]
    return [*lines, Line(faint(f"  … {formatting.plural(hidden, 'more metric')}"))] if hidden else lines


class EvalsScreen(ListScreen):
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.EVALS, Scope.LIST)
    SCOPES = (Scope.RUN, Scope.EVALS, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("app.back"),
        hint("evals.previous", "evals.next", label="metric"),
        hint("run.evaluate", label="evaluate now"),
        hint("list.down", "list.up", label="move"),
        hint("show.help"),
        hint("app.quit"),
    )
    PANE = EvalsPane

    def action_next_metric(self, by: int) -> None:
        self.query_one(EvalsPane).next_metric(by)
