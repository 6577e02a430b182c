"""The line on which one moves through a recorded run: where in it one is, when that was, how far the run had got."""

from __future__ import annotations

import time

from textual import events

from atropos_tui.monitor.recorded.timeline import Timeline
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, join_that_fit, strong
from atropos_tui.ui.live_canvas import LiveCanvas
from atropos_tui.ui.moment import Moment

_DAY_SECONDS = 86_400.0
_MOST_WORDS = 80


class TimeSlider(LiveCanvas):
    """Shown for recorded runs only. A click on the track seeks."""

    def __init__(self) -> None:
        super().__init__(id="time-slider")
        self.display = False
        self._track_width = 1

    def show(self, moment: Moment) -> None:
        self.display = moment.timeline is not None
        super().show(moment)

    def draw(self, width: int, height: int) -> list[Line]:
        del height
        timeline = self.moment.timeline
        if timeline is None:
            return []
        room = min(_MOST_WORDS, width * 7 // 10)
        self._track_width = max(1, width - room - 4)
        words = join_that_fit(self._words(timeline), room, " · ")
        return [Line(" ") + track(timeline.share, self._track_width) + Line("  ") + words]

    def on_click(self, event: events.Click) -> None:
        if (recorded := self.atropos.recorded) is not None and 1 <= event.x <= self._track_width:
            share = (event.x - 1) / max(1, self._track_width - 1)
            recorded.seek(recorded.timeline.placed(share))

    def _words(self, timeline: Timeline) -> list[Line]:
        """The most important first."""
        if not timeline.dated:
            here, last = round(timeline.position), round(timeline.end)
            return [_end_words(timeline), Line(dim("line "), strong(formatting.count(here)), dim(_of(last)))]
        snapshot = self.moment.snapshot
        shown = timeline.position if timeline.exact else snapshot.taken_at
        begin, end = timeline.begin, timeline.end
        return [
            _end_words(timeline),
            Line(strong(clock_time(shown, with_day=end - begin >= _DAY_SECONDS)), "" if timeline.exact else dim(" …")),
            Line(formatting.age(shown - begin), dim(f" of {formatting.age(end - begin)}")),
            Line(dim("step "), formatting.count(snapshot.run.step)),
            Line(dim("event "), formatting.count(snapshot.seq), dim(_of(timeline.last_seq))),
        ]


def track(share: float, width: int) -> Line:
    """A knob on a track, at a share (0–1) of it."""
    before = round(share * (width - 1))
    rest = Span("─" * (width - 1 - before), Ink.FAINT)
    return Line(Span("━" * before, Ink.ACCENT), Span("●", Ink.ACCENT, bold=True), rest)


def clock_time(at: float, *, with_day: bool) -> str:
    """Local time of Unix seconds."""
    return time.strftime("%d %b %H:%M:%S" if with_day else "%H:%M:%S", time.localtime(at))


def _end_words(timeline: Timeline) -> Line:
    if timeline.at is not None:
        return Line()
    return Line(Span("live", Ink.GOOD, bold=True)) if timeline.follows else Line(dim("the end"))


def _of(last: int) -> str:
    return f" of {formatting.count(last)}"
