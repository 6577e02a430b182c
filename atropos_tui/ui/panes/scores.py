"""Scores: the trend over the run, the histogram of the newest groups, and the same as numbers."""

from __future__ import annotations

import math

from atropos_tui.monitor.snapshot import ScoresSection, TrendPoint
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, join_that_fit, spread, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.widgets.histogram import histogram
from atropos_tui.ui.widgets.trend import GUTTER, Sample, trend

# From this share of groups without advantage on, much of the work teaches nothing.
_HIGH_ZERO_ADVANTAGE = 0.5

# How much of the past the trend shows, in seconds.
WINDOWS = (math.inf, 3_600.0, 600.0, 120.0)


class ScoresPane(Pane):
    number = 2
    title = "Scores"

    def __init__(self) -> None:
        super().__init__()
        self._window = WINDOWS[0]

    @property
    def scores(self) -> ScoresSection:
        return self.moment.snapshot.scores

    def numbers(self, room: int) -> Line:
        del room
        if not self.scores.groups:
            return Line()
        return Line(dim("mean "), strong(formatting.score(self.scores.mean), Ink.ACCENT))

    def body(self, width: int, height: int) -> list[Line]:
        if not self.scores.groups:
            return [waiting("no group has been scored yet"), *self.reason_for_waiting(width)]
        roomy, airy = height >= 15, height >= 24
        head = [self._progress(width)]
        foot = self._text(width, 3 if airy else 2 if roomy else 1)
        if airy:
            head, foot = [*head, Line()], [Line(), *foot]
        room = height - len(head) - len(foot)
        for_histogram = max(4, room * 9 // 20)
        for_trend = room - for_histogram - (2 if roomy else 0)
        middle = trend(self._samples(), width, for_trend, bottom=self._bottom, top=self._top)
        if roomy:
            middle += [self._time_axis(width), Line()]
        return head + middle + self._histogram(width, for_histogram) + foot

    @property
    def _bottom(self) -> float:
        return self.scores.edges[0] if self.scores.edges else self.scores.low

    @property
    def _top(self) -> float:
        return self.scores.edges[-1] if self.scores.edges else self.scores.high

    def next_window(self) -> None:
        """From the whole run to shorter and shorter pasts, and back."""
        self._window = WINDOWS[(WINDOWS.index(self._window) + 1) % len(WINDOWS)]
        self.redraw()

    @property
    def _points(self) -> list[TrendPoint]:
        """The part of the trend that is asked for."""
        return [point for point in self.scores.trend if self.moment.since(point.at) <= self._window]

    def _samples(self) -> list[Sample]:
        return [Sample(point.mean, point.low, point.high) for point in self._points]

    def _histogram(self, width: int, height: int) -> list[Line]:
        return histogram(self.scores.edges, self.scores.bins, self.scores.spikes, width, height)

    def _progress(self, width: int) -> Line:
        """The run in three numbers."""
        scores = self.scores
        if scores.first20 is None or scores.last20 is None or scores.best20 is None:
            more = f"{formatting.plural(scores.groups, 'group')} so far; averages of 20 from 20 groups on"
            return Line(dim(more)).fit(width)
        parts = [
            Line(dim("first 20 "), formatting.score(scores.first20)),
            Line(dim("last 20 "), strong(formatting.score(scores.last20))),
            Line(dim("best 20 "), formatting.score(scores.best20)),
        ]
        return join_that_fit(parts, width, " · ")

    def _time_axis(self, width: int) -> Line:
        points = self._points
        started = self.moment.since(points[0].at) if points else 0.0
        left = Line(dim(f"{formatting.age(started)} ago"))
        right = Line(dim("now" if not self.moment.ended else "end"))
        return Line(" " * GUTTER) + spread(left, right, width - GUTTER)

    def _text(self, width: int, height: int) -> list[Line]:
        scores = self.scores
        zero = Ink.WARN if scores.zero_advantage_share >= _HIGH_ZERO_ADVANTAGE else Ink.TEXT
        zero_advantage = Line(Span(formatting.percent(scores.zero_advantage_share), zero), dim(" zero advantage"))
        spread_numbers = [
            Line(dim("within "), formatting.score(scores.within_std)),
            Line(dim("between "), formatting.score(scores.between_std)),
        ]
        spikes = [
            Line(Span("▮ ", Ink.SPIKE), dim("exactly "), f"{formatting.exact(value)} ×{formatting.count(many)}")
            for value, many in scores.spikes[:4]
        ]
        window = Line(dim("last "), formatting.count(scores.window), dim(" groups"))
        lengths = [
            Line(formatting.short_count(scores.completion_tokens), dim(" tokens/rollout")),
            Line(Span(formatting.percent(scores.truncated_share)), dim(" truncated")),
        ]
        if height == 1:
            return [join_that_fit([zero_advantage, *spread_numbers], width, " · ")]
        lines = [
            join_that_fit([window, *spikes], width, " · "),
            join_that_fit([zero_advantage, *spread_numbers], width, " · "),
            join_that_fit(lengths, width, " · "),
        ]
        return lines if height > 2 else lines[:2]
