"""The lines at the top: which run in which state, why nothing moves, and the ledger's equation."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import Outcome, RunState
from atropos_tui.monitor.snapshot import LedgerSection, RunSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, dim, faint, join_that_fit, spread, strong
from atropos_tui.ui.keys import named
from atropos_tui.ui.live_canvas import LiveCanvas
from atropos_tui.ui.moment import AT_WORK, Contact, Moment
from atropos_tui.ui.run_source import RestartableSource
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import gauge

_STALE_SECONDS = 30.0
_WAIT_SECONDS = 3.0
# From this share of the last minute on it is the trainer who decides how fast groups are made.
_TRAINERS_PACE = 0.5

STATE_GLYPHS = {
    RunState.STARTING: ("◌", Ink.WARN),
    RunState.RUNNING: ("●", Ink.GOOD),
    RunState.PAUSING: ("◐", Ink.WARN),
    RunState.PAUSED: ("‖", Ink.WARN),
    RunState.EVALUATING: ("◆", Ink.ACCENT),
    RunState.FINISHING: ("◑", Ink.ACCENT),
    RunState.FINISHED: ("✓", Ink.GOOD),
    RunState.CRASHED: ("✗", Ink.BAD),
}

# What the terms of the equation are called, at length and where room is short.
_TERMS = {
    Outcome.IN_FLIGHT: ("in flight", "flight"),
    Outcome.IN_OUTBOX: ("outbox", "outbox"),
    Outcome.DELIVERED: ("delivered", "sent"),
    Outcome.SKIPPED: ("skipped", "skip"),
    Outcome.REJECTED: ("rejected", "rej"),
    Outcome.FAILED: ("failed", "fail"),
    Outcome.REFUSED: ("refused", "refused"),
    Outcome.REQUEUED: ("requeued", "requ"),
}


class Header(LiveCanvas):
    """Two or three lines, as high as the style sheet says. Red when the run crashed or the ledger is off."""

    def __init__(self, title: str, *, read_only: bool) -> None:
        super().__init__(id="header")
        self.title = title
        self._read_only = read_only

    def draw(self, width: int, height: int) -> list[Line]:
        moment, inner = self.moment, width - 2
        lines = [self._first(inner), self._second(inner, has_third=height > 2)]
        if height > 2:
            lines.append(equation(moment.snapshot.ledger, inner) if moment.known else Line())
        ground = Ground.ALARM if alarmed(moment) else Ground.PLAIN
        return [(Line(" ") + line.fit(inner) + Line(" ")).on(ground) for line in lines]

    def _first(self, width: int) -> Line:
        moment = self.moment
        run = moment.snapshot.run
        right = self._right(run)
        parts = [state_words(moment), self._environment(run)]
        if moment.known:
            parts += [self._step(run, width), *self._ages(run)]
            if width >= 110:
                parts.insert(2, Line(dim(visible(run.run_id))))
        return spread(join_that_fit(parts, width - right.width - 2, "   "), right, width)

    def _environment(self, run: RunSection) -> Line:
        return Line(strong(visible(run.environment or self.title)))

    def _step(self, run: RunSection, width: int) -> Line:
        if run.total_steps <= 0:
            return Line(dim("step "), formatting.count(run.step))
        text = Line(dim("step "), formatting.count(run.step), dim(f"/{formatting.count(run.total_steps)}"))
        return text + Line(" ") + gauge(run.step, run.total_steps, 12) if width >= 110 else text

    def _ages(self, run: RunSection) -> list[Line]:
        """How long the run lasts, and how long ago anything progressed."""
        moment = self.moment
        if moment.ended:
            took = Line(dim("took "), formatting.age(max(0.0, run.ended_at - run.started_at)))
            return [took] if run.started_at else []
        parts = []
        if run.last_progress_at:
            since = moment.since(run.last_progress_at)
            ink = Ink.WARN if since >= _STALE_SECONDS and run.state in AT_WORK else Ink.TEXT
            parts.append(Line(dim("progress "), Span(formatting.age(since), ink), dim(" ago")))
        if run.loop_lag and not moment.ended:
            parts.append(Line(dim("loop "), Span(formatting.duration(run.loop_lag), Ink.WARN), dim(" late")))
        if run.started_at:
            parts.append(Line(dim("up "), formatting.age(moment.since(run.started_at))))
        return parts

    def _right(self, run: RunSection) -> Line:
        parts = []
        if self._read_only:
            parts.append(Line(dim("read-only" if self.moment.timeline is None else "recorded")))
        if run.alerts:
            severe = any(alert.severe for alert in run.alerts)
            text = f"! {formatting.plural(len(run.alerts), 'alert')}"
            parts.append(Line(strong(text, Ink.BAD if severe else Ink.WARN)))
        return Line(*(span for part in parts for span in (Span("  "), *part.spans)))

    def _way_on(self) -> Line:
        """How a crashed run goes on, where that can be done from here."""
        if self._read_only or not isinstance(self.atropos.source, RestartableSource):
            return Line()
        return Line(strong(self.atropos.keys_of(named("run.restart"))), dim(" starts it again"))

    def _second(self, width: int, *, has_third: bool) -> Line:
        """What is most worth knowing: a fault, what everything waits for, an alert; else the flow."""
        moment = self.moment
        snapshot = moment.snapshot
        if not snapshot.ledger.balanced:
            return Line(strong(f"the ledger is off: {visible(snapshot.ledger.violation)}", Ink.BAD))
        if moment.contact is not Contact.CONNECTED:
            return contact_words(moment)
        if moment.ended:
            why = Line(Span(visible(snapshot.run.why_ended), Ink.BAD if alarmed(moment) else Ink.DIM))
            return spread(why, self._way_on(), width) if alarmed(moment) else why
        if snapshot.run.headline:
            says = Line(Span("▸ ", Ink.WARN), visible(snapshot.run.headline))
            return _with_age(says, self._for_how_long(snapshot.run), width)
        alert = next(iter(sorted(snapshot.run.alerts, key=lambda alert: not alert.severe)), None)
        if alert is not None:
            since = formatting.age(moment.since(alert.since_at))
            says = Line(Span("! ", Ink.BAD if alert.severe else Ink.WARN), visible(alert.text))
            return _with_age(says, f"  for {since}", width)
        if has_third:
            return self._flow(width)
        return equation(snapshot.ledger, width)

    def _for_how_long(self, run: RunSection) -> str:
        """How long it has been waited for; empty where nobody would ask."""
        if run.loop_held_by:
            return f"  for {formatting.duration(run.loop_lag)}"
        if unwritable_since := self.moment.snapshot.sends.unwritable_since_at:
            return f"  for {formatting.age(self.moment.since(unwritable_since))}"
        since = self.moment.since(run.last_progress_at or run.started_at)
        waits = run.state in AT_WORK and run.started_at and since >= _WAIT_SECONDS
        return f"  for {formatting.age(since)}" if waits else ""

    def _flow(self, width: int) -> Line:
        """That nothing is waited for, with the rates that show it, and whether more could be made than is taken."""
        snapshot = self.moment.snapshot
        queue, sends, skipped = snapshot.queue, snapshot.sends, snapshot.skipped
        if skipped.last_minute and skipped.last_minute == skipped.ended_last_minute:
            ended = formatting.plural(skipped.ended_last_minute, "group")
            return Line(Span("▸ ", Ink.WARN), f"{ended} ended in the last minute, and none reached the trainer")
        parts = [Line(Span("▸ ", Ink.GOOD), dim("groups flow"))]
        pace = f", a step takes {formatting.duration(sends.seconds_per_step)}" if sends.seconds_per_step else ""
        if held := queue.held_by_trainer >= _TRAINERS_PACE:
            share = formatting.percent(queue.held_by_trainer)
            parts.append(Line(dim("held by the trainer "), share, dim(f" of the last minute{pace}")))
        parts.append(Line(formatting.rate(queue.groups_per_second), dim(" scored")))
        parts.append(Line(formatting.rate(sends.delivered_per_second), dim(" delivered")))
        if sends.trainer_step_at:
            since = formatting.age(self.moment.since(sends.trainer_step_at))
            parts.append(Line(dim("trainer's step "), since, dim(f" ago{'' if held else pace}")))
        return join_that_fit(parts, width, " · ")


def _with_age(says: Line, age: str, width: int) -> Line:
    """Where there is too little room, what it says is cut, and the age stays."""
    return says.fit(min(says.width, max(1, width - len(age)))) + Line(dim(age))


def alarmed(moment: Moment) -> bool:
    """Whether the header must be read now."""
    return not moment.snapshot.ledger.balanced or moment.snapshot.run.state is RunState.CRASHED


def state_words(moment: Moment) -> Line:
    """The state as a shape and a word; a command that was just given shows at once."""
    if moment.contact is Contact.DISCONNECTED:
        return Line(strong("○ disconnected", Ink.BAD))
    if not moment.known:
        return Line(strong("◌ connecting", Ink.WARN))
    state = moment.snapshot.run.state
    glyph, ink = STATE_GLYPHS[state]
    if moment.asked:
        return Line(strong(f"◐ {moment.asked}", Ink.WARN))
    return Line(strong(f"{glyph} {state}", ink))


def contact_words(moment: Moment) -> Line:
    if moment.contact is Contact.CONNECTING:
        return Line(Span("▸ ", Ink.WARN), dim("waiting for the first news of the run"))
    again = f"trying again in {formatting.duration(moment.retry_in)}"
    stale = f", the numbers below are {formatting.age(moment.since(moment.snapshot.taken_at))} old"
    parts = [Span(visible(moment.lost_because), Ink.BAD), dim(f" · {again}{stale if moment.known else ''}")]
    return Line(Span("▸ ", Ink.BAD), *parts)


def equation(ledger: LedgerSection, width: int) -> Line:
    """`started 123 = 4 in flight + 2 outbox + …`; on narrow screens without terms of zero, or in shorter words."""
    every = [(ledger.by_outcome.get(outcome, 0), words) for outcome, words in _TERMS.items()]
    present = [(many, words) for many, words in every if many]
    equals = " = " if ledger.started == sum(ledger.by_outcome.values()) else " ≠ "
    started = Line(dim("started "), strong(formatting.count(ledger.started)), dim(equals))
    full = started + _sum([(many, word) for many, (word, _) in every], " + ")
    if full.width <= width:
        return full
    long_words = _sum([(many, word) for many, (word, _) in present], " + ")
    if (line := started + long_words).width <= width:
        return line
    started = Line(strong(formatting.count(ledger.started)), dim(equals))
    if (line := started + long_words).width <= width:
        return line
    return started + _sum([(many, word) for many, (_, word) in present], "+")


def _sum(terms: list[tuple[int, str]], plus: str) -> Line:
    spans: list[Span] = []
    for many, word in terms:
        if spans:
            spans.append(faint(plus))
        spans += [Span(formatting.count(many), Ink.TEXT if many else Ink.FAINT), dim(f" {word}")]
    return Line(*spans) if spans else Line(Span("0"))
