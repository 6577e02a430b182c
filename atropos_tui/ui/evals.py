"""Evaluations over steps: one metric after the other as a chart, all as a table."""

from __future__ import annotations

import math
from typing import ClassVar

from textual.binding import BindingType

from atropos_tui.monitor.snapshot import EvalRow, EvalsSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, join_that_fit, spread, strong
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.widgets.table import Column, Table
from atropos_tui.ui.widgets.trend import GUTTER, Sample, trend
from atropos_tui.ui.wrapping import wrapped


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
        table = self._table().lines(width, height - len(chart) - 4)
        return [*chart, *table, Line(), *self._details(width)]

    @property
    def metric_names(self) -> list[str]:
        """Every metric that any evaluation gave, in order of first appearance, oldest evaluation first."""
        return list(dict.fromkeys(name for row in reversed(self.evals.rows) for name in row.metrics))

    @property
    def metric(self) -> str:
        """The one in the chart; empty where there is none."""
        names = self.metric_names
        return self._metric if self._metric in names else next(iter(names), "")

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
        samples = [Sample(value, value, value) for value in values]
        steps = spread(Line(dim(f"step {told[0][0]:,}")), Line(dim(f"step {told[-1][0]:,}")), width - GUTTER)
        return [
            self._chart_title(told, width),
            *trend(samples, width, height - 1, bottom=bottom, top=top),
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
        names = self.metric_names
        columns = [Column("step", 7, right=True), Column("age", 4, right=True), Column("took", 6, right=True)]
        columns += [
            Column(visible(name), max(8, min(20, len(name))), right=True, rank=rank) for rank, name in enumerate(names)
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

    def _details(self, width: int) -> list[Line]:
        row = self.evals.rows[self.cursor]
        if row.error:
            text = visible_lines(row.traceback.rstrip() or row.error)
            return [Line(Span(part, Ink.BAD)) for line in text for part in wrapped(line, width)]
        parts = [Line(dim(f"{visible(name)} "), f"{value:.6g}") for name, value in row.metrics.items()]
        return [join_that_fit(parts, width, " · ")]


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
