"""The fleet: one row a run, those found on this machine and those given by URL; to open, to pause and to resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.ui import formatting
from atropos_tui.ui.footer import Footer
from atropos_tui.ui.header import STATE_GLYPHS
from atropos_tui.ui.ink import Ink, Line, Span, clip_middle, dim, faint, join_that_fit, strong
from atropos_tui.ui.keys import Scope, bindings, hint, named
from atropos_tui.ui.list_screen import ListScreen
from atropos_tui.ui.moment import AT_WORK
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, waiting_wrapped
from atropos_tui.ui.run_source import NoRun
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.frame import FRAME_HEIGHT, FRAME_WIDTH, framed
from atropos_tui.ui.widgets.table import Cell, Column, Table
from atropos_tui.ui.wrapping import wrapped

_STALE_SECONDS = 30.0
_HIGH_ZERO_ADVANTAGE = 0.5
_MOST_DETAILS = 4
_WIDE = 150
_COLUMNS = (
    Column("", 1),
    Column("run", 18, grows=True),
    Column("state", 12),
    Column("step", 11, right=True, rank=1),
    Column("scored", 7, right=True, rank=3),
    Column("sent", 7, right=True, rank=4),
    Column("mean", 5, right=True, rank=5),
    Column("zero adv", 8, right=True, rank=2),
    Column("outbox", 6, right=True, rank=2),
    Column("alerts", 6, right=True),
    Column("progress", 8, right=True),
)


class FleetPane(Pane):
    """The cursor stays on its run while others come and go; marks are by run."""

    title = "Fleet"

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet = fleet
        self.with_ended = True
        self.marked: set[str] = set()

    @property
    def runs(self) -> Sequence[FleetRun]:
        return [run for run in self._fleet.runs if self.with_ended or not run.ended]

    @property
    def rows(self) -> int:
        return len(self.runs)

    def row_key(self, index: int) -> str:
        return self.runs[index].key

    @property
    def run(self) -> FleetRun | None:
        """The one under the cursor."""
        runs = self.runs
        return runs[min(self.cursor, len(runs) - 1)] if runs else None

    def numbers(self, room: int) -> Line:
        runs = self._fleet.runs
        answering = sum(run.answers for run in runs)
        silent = sum(run.presence is Presence.SILENT for run in runs)
        ended = sum(run.ended for run in runs)
        parts = [Line(strong(str(answering)), dim(" alive"))]
        if silent:
            parts.append(Line(Span(f"{silent} silent", Ink.BAD)))
        if self.marked:
            parts.append(Line(Span(f"{len(self.marked)} marked", Ink.ACCENT)))
        if elsewhere := sum(run.presence is Presence.ELSEWHERE and not run.ended for run in runs):
            parts.append(Line(dim(f"{elsewhere} elsewhere")))
        parts.append(Line(dim(f"{ended} ended{'' if self.with_ended else ', left out'}")))
        if self._fleet.left_out:
            parts.append(Line(dim(f"{formatting.count(self._fleet.left_out)} older")))
        return join_that_fit(parts, room, " · ")

    def draw(self, width: int, height: int) -> list[Line]:
        title = Line(strong(self.title, Ink.ACCENT if self.has_focus else Ink.TEXT))
        body = self.body(width - FRAME_WIDTH, height - FRAME_HEIGHT)
        numbers = self.numbers(width - title.width - 8)
        return framed(body, width, height, title=title, numbers=numbers, focused=self.has_focus)

    def body(self, width: int, height: int) -> list[Line]:
        runs = self.runs
        if not runs:
            return waiting_wrapped(self._why_empty(), width)
        details = self._details(width)
        room = height - len(details) - 1
        columns = (*_COLUMNS, Column("waits for", 30, grows=True)) if width >= _WIDE else _COLUMNS
        table = Table(columns, len(runs), lambda index: self._row(runs[index]), cursor=self.cursor)
        lines = table.lines(width, room)
        return [*lines, *[Line()] * (room - len(lines)), Line(faint("─" * width)), *details]

    def _why_empty(self) -> str:
        if self._fleet.runs:
            return f"all runs have ended; {self.atropos.keys_of(named('fleet.ended'))} shows them"
        return "no run is known: start one with `atropos-tui serve`, or give URLs to `atropos-tui fleet`"

    def _row(self, run: FleetRun) -> tuple[Cell, ...]:
        summary = run.summary
        glyph, ink, word = _state(run)
        mark = Span("▪ ", Ink.ACCENT, bold=True) if run.key in self.marked else Span("")

        def name(width: int) -> Line:
            """The end tells runs of one environment apart, so that the middle is left out."""
            return Line(mark, clip_middle(visible(run.name), width - len(mark.text)))

        nothing = Line(faint("–"))
        if not summary.taken_at:
            progress = self._progress(run)
            return (Line(Span(glyph, ink)), name, Line(Span(word, ink)), *[nothing] * 7, progress, _says(run))
        of = f"/{formatting.short_count(summary.total_steps)}" if summary.total_steps > 0 else ""
        zero = Ink.WARN if summary.zero_advantage_share >= _HIGH_ZERO_ADVANTAGE else Ink.TEXT
        share = formatting.percent(summary.zero_advantage_share)
        moves = not run.ended
        return (
            Line(Span(glyph, ink)),
            name,
            Line(Span(word, ink)),
            Line(formatting.count(summary.step), dim(of)),
            Line(formatting.rate(summary.groups_per_second)) if moves else nothing,
            Line(formatting.rate(summary.delivered_per_second)) if moves else nothing,
            Line(formatting.score(summary.mean_score)) if summary.scored else nothing,
            Line(Span(share, zero)) if summary.scored else nothing,
            Line(formatting.count(summary.outbox)) if summary.outbox else Line(faint("0")),
            self._alerts(run),
            self._progress(run),
            _says(run),
        )

    def _alerts(self, run: FleetRun) -> Line:
        alerts = run.summary.alerts
        if not alerts:
            return Line(faint("0"))
        return Line(Span(f"! {len(alerts)}", Ink.BAD if any(alert.severe for alert in alerts) else Ink.WARN))

    def _progress(self, run: FleetRun) -> Line:
        """The age of the last progress; of a run that ended, of its end."""
        summary = run.summary
        if run.ended:
            end = summary.ended_at or summary.taken_at
            return Line(dim(formatting.age(self.atropos.wall_clock() - end))) if end else Line(faint("–"))
        if not summary.last_progress_at:
            return Line(faint("–"))
        since = self._fleet.now(run) - summary.last_progress_at
        stale = since >= _STALE_SECONDS and summary.state in AT_WORK
        return Line(Span(formatting.age(since), Ink.WARN if stale else Ink.TEXT))

    def _details(self, width: int) -> list[Line]:
        """Of the run under the cursor: what it waits for, its alerts, and where it is."""
        run = self.run
        if run is None:
            return []
        where = Line(visible(run.key), dim(f" · {visible(run.summary.environment)}" if run.summary.environment else ""))
        says = _says(run)
        ink = says.spans[0].ink if says.spans else Ink.TEXT
        parts = [Line(Span(part, ink)) for part in wrapped(says.plain, width - 10)]
        lines = [fact("where", where), *(fact("" if index else "now", part) for index, part in enumerate(parts))]
        for alert in run.summary.alerts:
            since = formatting.age(self._fleet.now(run) - alert.since_at)
            ink = Ink.BAD if alert.severe else Ink.WARN
            lines.append(fact("alert", Line(Span(visible(alert.text), ink), dim(f"  for {since}"))))
        return lines[:_MOST_DETAILS]


def _says(run: FleetRun) -> Line:
    """What it waits for, why it is silent, or how it ended."""
    if run.presence is Presence.SILENT:
        return Line(Span(visible(run.why), Ink.BAD))
    if run.ended or run.presence is Presence.ELSEWHERE:
        return Line(dim(visible(run.why)))
    return Line(visible(run.summary.headline) or dim("groups flow"))


def _state(run: FleetRun) -> tuple[str, Ink, str]:
    """A shape, its ink and a word."""
    match run.presence:
        case Presence.SILENT:
            return "○", Ink.BAD, "silent"
        case Presence.LOOKING:
            return "◌", Ink.DIM, "looking"
        case Presence.ELSEWHERE:
            return "◇", Ink.DIM, "elsewhere"
        case _:
            glyph, ink = STATE_GLYPHS[run.summary.state]
            quiet = run.summary.state is RunState.FINISHED
            return glyph, Ink.DIM if quiet else ink, run.summary.state


class FleetScreen(ListScreen):
    """Has no header of a run; the runs are asked while it is open only."""

    NEEDS_RUN = False
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.FLEET, Scope.LIST)
    SCOPES = (Scope.FLEET, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("fleet.open"),
        hint("fleet.mark"),
        hint("fleet.pause"),
        hint("fleet.resume"),
        hint("fleet.mark_all"),
        hint("show.help"),
        hint("app.quit"),
        hint("fleet.ended"),
        hint("app.back"),
    )

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet = fleet

    def compose(self) -> ComposeResult:
        yield FleetPane(self._fleet)
        yield Footer(self.FOOTER, read_only=self.atropos.read_only)

    def on_mount(self) -> None:
        self._watch()

    @property
    def fleet_pane(self) -> FleetPane:
        return self.query_one(FleetPane)

    def back(self) -> bool:
        """Where no run is open there is nothing behind this screen."""
        return isinstance(self.atropos.source, NoRun)

    def action_open(self) -> None:
        run = self.fleet_pane.run
        if run is None:
            return
        if run.presence is Presence.ELSEWHERE and not run.summary.taken_at:
            self.atropos.say(f"{run.name}: {run.why}", "warning")
            return
        try:
            self.atropos.watch_fleet_run(run)
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "error")

    def action_mark(self) -> None:
        run = self.fleet_pane.run
        if run is not None:
            self.fleet_pane.marked ^= {run.key}
            self.fleet_pane.move_cursor(1)

    def action_mark_all(self) -> None:
        pane = self.fleet_pane
        pane.marked = set() if pane.marked else {run.key for run in pane.runs if run.answers}
        pane.redraw()

    def action_toggle_ended(self) -> None:
        pane = self.fleet_pane
        pane.with_ended = not pane.with_ended
        pane.move_cursor(0)

    def action_pause(self) -> None:
        self._ask("pause", "no further group starts; those in flight finish")

    def action_resume(self) -> None:
        self._ask("resume", "groups start again")

    def _ask(self, command: Literal["pause", "resume"], consequence: str) -> None:
        from atropos_tui.ui.confirm import ConfirmScreen

        pane = self.fleet_pane
        under_cursor = {pane.run.key} if pane.run is not None else set()
        wanted = [run for run in self._fleet.runs if run.key in (pane.marked or under_cursor)]
        able = [run for run in wanted if run.answers]
        if self.atropos.read_only:
            self.atropos.say("read-only: this screen cannot change a run", "warning")
        elif not able:
            silent = ", ".join(run.name for run in wanted) or "there is no run"
            self.atropos.say(f"nothing to {command}, for want of an answer: {silent}", "warning")
        else:
            which = able[0].name if len(able) == 1 else formatting.plural(len(able), "run")
            title = f"{command.capitalize()} {visible(which)}?"
            widest = max(len(run.name) for run in able)
            names = [f"{visible(run.name):<{widest}}  {run.summary.state}" for run in able]
            left_out = len(wanted) - len(able)
            names += [f"({formatting.plural(left_out, 'marked run')} left out: no answer)"] if left_out else []

            def answered(yes: bool | None) -> None:
                if yes:
                    self._command(able, command)

            self.app.push_screen(ConfirmScreen(title, consequence, names), answered)

    @work(group="fleet-commands")
    async def _command(self, runs: Sequence[FleetRun], command: Literal["pause", "resume"]) -> None:
        faults = await self._fleet.command([run.key for run in runs], command)
        for run in runs:
            if fault := faults.get(run.key):
                self.atropos.say(f"{run.name}: {fault}", "error")
        done = len(runs) - len(faults)
        if done:
            word = "paused" if command == "pause" else "resumed"
            self.atropos.say(f"{word}: {formatting.plural(done, 'run')} of {len(runs)}")
        self.fleet_pane.marked.clear()
        self.fleet_pane.redraw()

    @work(group="fleet")
    async def _watch(self) -> None:
        await self._fleet.watch(self.fleet_pane.redraw)
