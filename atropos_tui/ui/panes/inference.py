"""The inference servers: one line on the dashboard, a table where there is room."""

from __future__ import annotations

from atropos_tui.monitor.snapshot import InferenceSection, ServerRow
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import gauge
from atropos_tui.ui.widgets.table import Column, Table

_GAUGE_WIDTH = 20
_RECENT_ERROR_SECONDS = 60.0
_COLUMNS = (
    Column("", 1),
    Column("server", 26),
    Column("model", 14, rank=6),
    Column("in flight", 9, right=True),
    Column("eval", 7, right=True, rank=7),
    Column("p50", 6, right=True, rank=1),
    Column("p95", 6, right=True, rank=3),
    Column("tokens", 7, right=True, rank=1),
    Column("requests", 8, right=True, rank=5),
    Column("errors", 6, right=True, rank=2),
    Column("weights", 7, right=True, rank=4),
    Column("", 12, grows=True, rank=8),
)


class InferencePane(Pane):
    """Draws a line without a frame when it is one row high."""

    number = 5
    title = "Inference"

    @property
    def inference(self) -> InferenceSection:
        return self.moment.snapshot.inference

    @property
    def rows(self) -> int:
        return len(self.inference.servers)

    def numbers(self, room: int) -> Line:
        del room
        servers = self.inference.servers
        if not servers:
            return Line()
        healthy = sum(server.healthy is True for server in servers)
        # One that was only just called is not known to be ill.
        ink = Ink.BAD if any(server.healthy is False for server in servers) else Ink.TEXT
        return Line(Span(f"{healthy} of {formatting.plural(len(servers), 'server')}", ink), dim(" healthy"))

    def draw(self, width: int, height: int) -> list[Line]:
        return super().draw(width, height) if height > 2 else [self._one_line(width)]

    def body(self, width: int, height: int) -> list[Line]:
        if not self.inference.servers:
            return [waiting("no inference server is known yet")]
        lines = Table(_COLUMNS, self.rows, self._row, cursor=self.shown_cursor).lines(width, height)
        room = height - len(lines) - 1
        if room <= 0:
            return lines
        details = [*self._details(), Line(), *self._server(width)] if self.zoomed else self._details()
        return [*lines, Line(), *details[:room]]

    def _one_line(self, width: int) -> Line:
        focused = self.has_focus
        head = Line(" ", Span("inference", Ink.ACCENT if focused else Ink.DIM, bold=focused), "  ")
        if not self.inference.servers:
            return head + Line(faint("no server is known yet" if self.moment.known else ""))
        return head + self._summaries(width - head.width - 1)

    def _summaries(self, width: int) -> Line:
        """Unhealthy servers first; those for which there is no room even in short are counted."""
        servers = sorted(self.inference.servers, key=lambda server: server.healthy is not False)
        at_length = join((self._summary(server, in_words=True) for server in servers), "   ")
        if at_length.width <= width:
            return at_length
        line, left_out = Line(), 0
        for number, server in enumerate(servers):
            rest = f"   + {len(servers) - number - 1} more" if number + 1 < len(servers) else ""
            longer = join((line, self._summary(server)), "   ")
            if longer.width + len(rest) > width and number:
                left_out = len(servers) - number
                break
            line = longer
        return line + Line(dim(f"   + {left_out} more")) if left_out else line

    def _summary(self, server: ServerRow, *, in_words: bool = False) -> Line:
        name = Line(health_glyph(server.healthy), f" {server.server} ")
        if server.healthy is False:
            return name + Line(Span(visible(server.detail) or "unhealthy", Ink.BAD))
        in_flight = Line(f"{server.in_flight}", dim(f"/{server.limit}{' calls' if in_words else ''}"))
        if not server.requests:
            return name + in_flight
        if server.errors and self.moment.since(server.last_error_at) < _RECENT_ERROR_SECONDS:
            failed = f"{formatting.count(server.errors)} of {formatting.count(server.requests)} calls failed"
            return name + join((in_flight, Line(Span(failed, Ink.BAD))), " · " if in_words else " ")
        latency = Line(dim("p50 " if in_words else "")) + _latency(server.latency_p50)
        rate = Line(formatting.short_count(server.tokens_per_second), dim(" tok/s"))
        return name + join((in_flight, latency, rate), " · " if in_words else " ")

    def _row(self, index: int) -> tuple[Line, ...]:
        server = self.inference.servers[index]
        return (
            Line(health_glyph(server.healthy)),
            Line(dim(f"{server.server} "), visible(server.url)),
            Line(dim(visible(server.model_name))),
            Line(f"{server.in_flight}", dim(f"/{server.limit}")),
            Line(f"{server.eval_in_flight}", dim(f"/{server.eval_limit}")),
            _latency(server.latency_p50),
            _latency(server.latency_p95),
            Line(formatting.rate(server.tokens_per_second)),
            Line(formatting.count(server.requests)),
            Line(Span(formatting.count(server.errors), Ink.BAD if server.errors else Ink.DIM)),
            Line("–" if server.weight_version is None else formatting.count(server.weight_version)),
            Line(Span(visible(server.detail), Ink.BAD)),
        )

    def _server(self, width: int) -> list[Line]:
        """The server under the cursor in full, with its denominators."""
        server = self.inference.servers[self.cursor]
        share = formatting.percent(server.errors / server.requests) if server.requests else "0%"
        load = gauge(server.in_flight, server.limit, _GAUGE_WIDTH)
        newest = max((other.weight_version or 0 for other in self.inference.servers), default=0)
        whose = " · the environment's own, for no rollouts" if server.auxiliary else ""
        where = f"  {visible(server.server_type)} · {visible(server.url)}{whose}"
        lines = [
            Line(strong(f"Server {server.server}"), dim(where)),
            fact("model", Line(visible(server.model_name) or "–")),
            fact("health", Line(health_glyph(server.healthy), f" {_health_words(server)}")),
            fact("load", load + Line(f" {server.in_flight}", dim(f" of {server.limit} calls open"))),
            fact("eval", Line(f"{server.eval_in_flight}", dim(f" of {server.eval_limit} calls open"))),
            fact("errors", Line(f"{server.errors:,}", dim(f" of {server.requests:,} calls, {share}"))),
        ]
        if server.weight_version is not None:
            behind = newest - server.weight_version
            words = dim(f" · {behind} behind the newest") if behind else dim(" · the newest")
            lines.append(fact("weights", Line(formatting.count(server.weight_version), words)))
        return [line.fit(width) for line in lines]

    def _details(self) -> list[Line]:
        """What is wrong with servers, newest error included."""
        lines: list[Line] = []
        for server in self.inference.servers:
            if server.detail:
                lines.append(Line(dim(f"  {server.server} "), Span(visible(server.detail), Ink.BAD)))
            if server.last_error:
                when = formatting.age(self.moment.since(server.last_error_at))
                lines.append(Line(dim(f"  {server.server} {when} ago "), Span(visible(server.last_error), Ink.WARN)))
        return lines


def _latency(seconds: float) -> Line:
    """A percentile of the last minute; nothing was answered in it where that is 0."""
    return Line(formatting.duration(seconds)) if seconds > 0 else Line(faint("–"))


def _health_words(server: ServerRow) -> str:
    if server.detail:
        return visible(server.detail)
    return {None: "nothing is known yet", True: "answers", False: "does not answer"}[server.healthy]


def health_glyph(healthy: bool | None) -> Span:
    """Healthy, unhealthy, or nothing known yet; three shapes."""
    if healthy is None:
        return Span("◌", Ink.DIM)
    return Span("●", Ink.GOOD) if healthy else Span("✗", Ink.BAD)
