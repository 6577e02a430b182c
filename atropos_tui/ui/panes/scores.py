"""Scores: the trend over the run, the histogram of the newest groups, and the same as numbers."""

from __future__ import annotations

import math

from atropos_tui.monitor.histogram import nice_range
from atropos_tui.monitor.snapshot import ScoresSection, TrendPoint
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, spread, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import bar, sparkline
from atropos_tui.ui.widgets.histogram import histogram
from atropos_tui.ui.widgets.table import Cell, Column, Table
from atropos_tui.ui.widgets.trend import GUTTER, Sample, trend

# From this share of groups without advantage on, much of the work teaches nothing.
_HIGH_ZERO_ADVANTAGE = 0.5

# How much of the past the trend shows, in seconds.
WINDOWS = {math.inf: "whole run", 3_600.0: "last hour", 600.0: "last 10 minutes", 120.0: "last 2 minutes"}

# The time axis grows by the 32nd part of its length at once or less, for each growth paints the chart anew.
_STEPS_OF_AXIS = 32

# Zoomed, what else there is stands beside the charts from this width on, and below them otherwise.
_TWO_COLUMNS = 100
_PART_NAME = 18
_MOST_PARTS_BELOW = 5
_UNRECORDED = "not recorded so early: they are kept every 30 s"


class ScoresPane(Pane):
    number = 2
    title = "Scores"

    def __init__(self) -> None:
        super().__init__()
        self._window = math.inf

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
            return [
                waiting("no group has been scored yet"),
                *self._lost_without_scores(),
                *self.reason_for_waiting(width),
            ]
        if not self.zoomed:
            return self._charts(width, height)
        if width >= _TWO_COLUMNS:
            return self._two_columns(width, height)
        below = self._parts(width, _MOST_PARTS_BELOW + 1) if self.scores.parts else []
        below += [self._looks_in_short(width)] if self.scores.looks.rollouts or self._unrecorded else []
        return self._charts(width, height - len(below)) + below

    def _lost_without_scores(self) -> list[Line]:
        """Groups ended, and none of them had scores: what became of them stands in the pane beside."""
        if not (lost := self.moment.snapshot.skipped.total):
            return []
        return [Line(Span(f"  {formatting.plural(lost, 'group')} ended without any: 3 shows why", Ink.WARN))]

    def _two_columns(self, width: int, height: int) -> list[Line]:
        """The charts at the left; lengths and the parts of the score at the right."""
        beside = min(56, width * 2 // 5)
        left_width = width - beside - 3
        left = self._charts(left_width, height)
        left += [Line()] * (height - len(left))
        lengths = self._lengths(beside, min(16, height // 3))
        below = [*self._spreads(beside), Line(), *self._looks(beside)]
        room = height - len(lengths) - len(below) - 2
        right = [*lengths, Line(), *self._parts(beside, min(room, len(self.scores.parts) + 2)), Line(), *below]
        right += [Line()] * (height - len(right))
        rule = Line(faint(" │ "))
        return [one.fit(left_width) + rule + other for one, other in zip(left, right, strict=False)]

    def _charts(self, width: int, height: int) -> list[Line]:
        """The trend and the histogram, with their numbers as text."""
        roomy, airy = height >= 15, height >= 24
        head = [self._progress(width), *([self._window_numbers(width)] if self.zoomed and roomy else [])]
        foot = self._text(width, 3 if airy else 2 if roomy else 1)
        if airy:
            head, foot = [*head, Line()], [Line(), *foot]
        room = height - len(head) - len(foot)
        for_histogram = max(4, room * 9 // 20)
        for_trend = room - for_histogram - (2 if roomy else 0)
        samples = self._samples()
        (start, end), (bottom, top) = self._span, self._scale
        middle = trend(samples, width, for_trend, start=start, end=end, bottom=bottom, top=top)
        if not samples and middle:
            middle[0] = waiting(f"no group was scored in the {WINDOWS[self._window]}").fit(width)
        if roomy:
            middle += [self._time_axis(width), Line()]
        return head + middle + self._histogram(width, for_histogram) + foot

    @property
    def _scale(self) -> tuple[float, float]:
        """Of the trend: it is about means of groups, which differ less than scores do."""
        points = self._points
        return nice_range(min(point.low for point in points), max(point.high for point in points)) if points else (0, 1)

    def next_window(self) -> None:
        """From the whole run to shorter and shorter pasts, and back."""
        windows = list(WINDOWS)
        self._window = windows[(windows.index(self._window) + 1) % len(windows)]
        self.redraw()

    @property
    def _points(self) -> list[TrendPoint]:
        """The part of the trend that is asked for; in a window, from the one of the two that has more of it."""
        scores = self.scores
        if self._window == math.inf:
            return list(scores.trend)
        start, _ = self._span
        return max(
            ([point for point in points if point.at >= start] for points in (scores.trend, scores.recent)), key=len
        )

    @property
    def _span(self) -> tuple[float, float]:
        """The beginning and the end of the time axis, in Unix seconds; the end grows in steps that can be seen."""
        run = self.moment.snapshot.run
        end = run.ended_at if self.moment.ended and run.ended_at else self.moment.now
        first = self.scores.trend[0].at if self.scores.trend else end
        grain = 2.0 ** math.floor(math.log2(max(1.0, min(self._window, end - first)) / _STEPS_OF_AXIS))
        end = math.ceil(end / grain) * grain
        return max(first, end - self._window), end

    def _samples(self) -> list[Sample]:
        return [Sample(point.at, point.mean, point.low, point.high) for point in self._points]

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
        start, end = self._span
        left = Line(dim(f"{formatting.age(end - start)} {'before' if self.moment.ended else 'ago'}"))
        right = Line(dim("the end" if self.moment.ended else "now"))
        name = WINDOWS[self._window]
        room = width - GUTTER - left.width - right.width
        if room > len(name) + 4:
            ink = Ink.DIM if self._window == math.inf else Ink.ACCENT
            left = left.fit(left.width + (room - len(name)) // 2) + Line(Span(name, ink))
        return Line(" " * GUTTER) + spread(left, right, width - GUTTER)

    def _window_numbers(self, width: int) -> Line:
        """The trend in numbers."""
        points = self._points
        if not points:
            return Line(dim("trend  nothing in this window"))
        parts = [
            Line(dim("newest "), strong(formatting.score(points[-1].mean))),
            Line(dim("lowest group "), formatting.score(min(point.low for point in points))),
            Line(dim("highest "), formatting.score(max(point.high for point in points))),
            Line(formatting.plural(sum(point.groups for point in points), "group")),
        ]
        return join_that_fit(parts, width, " · ")

    def _lengths(self, width: int, height: int) -> list[Line]:
        """How long replies were over the same time."""
        points = self._points
        lengths = [point.completion_tokens for point in points]
        title = Line(strong("Tokens a rollout"))
        if not lengths:
            return [title]
        samples = [Sample(point.at, *(point.completion_tokens,) * 3) for point in points]
        parts = [
            Line(dim("newest "), formatting.short_count(lengths[-1])),
            Line(dim("oldest "), formatting.short_count(lengths[0])),
            Line(Span(formatting.percent(self.scores.truncated_share)), dim(" truncated")),
        ]
        start, end = self._span
        top = max(*lengths, 1.0)
        chart = trend(samples, width, max(2, height - 2), start=start, end=end, bottom=0.0, top=top)
        return [title, *chart, join_that_fit(parts, width, " · ")]

    def _parts(self, width: int, height: int) -> list[Line]:
        """The named parts of the score: mean, spread within groups, and the trend of each."""
        title = Line(strong("Parts of the score"), self._kept_when)
        parts = self.scores.parts
        if self._unrecorded:
            return [title, waiting(_UNRECORDED).fit(width)]
        if not parts:
            return [title, waiting("the environment tells none (`score_parts`)").fit(width)]
        columns = (
            Column("part", min(_PART_NAME, max(4, *(len(part.name) for part in parts)))),
            Column("mean", 5, right=True),
            Column("within", 6, right=True),
            Column("trend", 8, grows=True),
        )
        return [title, *Table(columns, len(parts), self._part, gap=2).lines(width, height - 1)]

    @property
    def _unrecorded(self) -> bool:
        """Whether nothing that the contents of groups told was kept of this moment or before it."""
        return self.scores.kept_at < 0

    @property
    def _kept_when(self) -> Span:
        """How old what the contents of groups told is, in a recorded moment between two that were kept."""
        kept_at = self.scores.kept_at
        return dim(f"  as of {formatting.age(self.moment.since(kept_at))} before") if kept_at > 0 else Span("")

    def _spreads(self, width: int) -> list[Line]:
        """How far scores differ within groups, which is what is learnt from, and between groups, on one scale."""
        scores = self.scores
        largest = max(scores.within_std, scores.between_std) or 1.0
        rows = [("within", scores.within_std), ("between", scores.between_std)]
        bars = [
            fact(name, Line(formatting.score(std)).fit(7)) + bar(std / largest)(max(1, width - 17))
            for name, std in rows
        ]
        share = Line(formatting.percent(scores.zero_advantage_share), dim(f" of the last {scores.window} groups"))
        return [Line(strong("Spread of scores")), *bars, fact("none", share)]

    def _looks(self, width: int) -> list[Line]:
        """What a look at some of the tokens showed."""
        looks = self.scores.looks
        title = strong("Tokens looked at")
        if not looks.rollouts:
            return [Line(title), waiting(_UNRECORDED if self._unrecorded else "none yet").fit(width)]
        end = f" (token {looks.end_token})" if looks.end_token >= 0 else ""
        shown = (
            (looks.repetitive, "go round in circles"),
            (looks.garbled, "are noise"),
            (looks.doubled_end, f"have the end of turn twice{end}"),
            (looks.untrained, "are trained on little of their text"),
        )
        lines = [Line(title, dim(f"  of {formatting.plural(looks.rollouts, 'rollout')}"), self._kept_when)]
        lines += [Line(Span(f"{many:>4} ", Ink.WARN if many else Ink.TEXT), dim(words)) for many, words in shown]
        if looks.mean_logprob is not None:
            lines.append(Line(f"{looks.mean_logprob:>4.1f} ", dim("mean logprob when sampled")))
        return [line.fit(width) for line in lines]

    def _looks_in_short(self, width: int) -> Line:
        looks = self.scores.looks
        if self._unrecorded:
            return waiting(f"parts and tokens: {_UNRECORDED}").fit(width)
        shown = (
            (looks.repetitive, "loop"),
            (looks.garbled, "noise"),
            (looks.doubled_end, "end twice"),
            (looks.untrained, "untrained"),
        )
        parts = [Line(Span(str(many), Ink.WARN if many else Ink.TEXT), dim(f" {words}")) for many, words in shown]
        parts[0] = Line(dim(f"looked at {looks.rollouts}: ")) + parts[0]
        if self.scores.kept_at > 0:
            parts.append(Line(self._kept_when))
        if looks.mean_logprob is not None:
            parts.append(Line(dim("logprob "), f"{looks.mean_logprob:.1f}"))
        return join_that_fit(parts, width, " · ")

    def _part(self, index: int) -> tuple[Cell, ...]:
        part = self.scores.parts[index]
        spread_ink = Ink.WARN if part.within_std == 0 else Ink.TEXT
        return (
            Line(visible(part.name)),
            Line(formatting.score(part.mean)),
            Line(Span(formatting.score(part.within_std), spread_ink)),
            lambda width: sparkline(part.points, width),
        )

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
