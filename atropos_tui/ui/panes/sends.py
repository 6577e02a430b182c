"""The way to the trainer: outbox, deliveries, what goes wrong there, and how far the trainer is."""

from __future__ import annotations

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.snapshot import SendsSection
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, join, join_that_fit, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import fact, waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.bars import columns, gauge
from atropos_tui.ui.wrapping import wrapped

_RECENT_ERROR_SECONDS = 60.0
# Cells that a line must have for the longer words, and beside its counts for the last error to tell anything.
_ROOM_FOR_SENTENCE = 44
_ROOM_FOR_ERROR = 26


class SendsPane(Pane):
    number = 4
    title = "Trainer sends"

    @property
    def sends(self) -> SendsSection:
        return self.moment.snapshot.sends

    def numbers(self, room: int) -> Line:
        del room
        return Line(strong(formatting.count(self.sends.delivered)), dim(" delivered"))

    def body(self, width: int, height: int) -> list[Line]:
        if not self.sends.api_url:
            return [waiting("not registered with a trajectory API yet"), *self.reason_for_waiting(width)]
        if self.zoomed:
            return self._zoomed(width, height)
        way = [self._outbox(width), self._delivered(width), self._last_error(width)]
        way += [self._bytes(width), self._record(width)]
        trainer = [self._trainer(width), self._trainer_queue(width)]
        way = [line for line in way if line.spans]
        roomy = height >= len(way) + len(trainer) + 2
        if not roomy:
            important = [*way[:2], *trainer, *way[2:]]
            return important[:height]
        lines = [self._api(), *way, Line(), *trainer]
        chart_height = min(5, height - len(lines) - 2)
        return lines + self._rate_chart(width, chart_height) if chart_height >= 2 else lines

    def _zoomed(self, width: int, height: int) -> list[Line]:
        """Everything there is, the body of the last error in full, and the chart as high as there is room."""
        way = [self._api(), self._outbox(width), self._delivered(width), self._taken_as(width), self._last_error(width)]
        lines = [line for line in (*way, self._bytes(width), self._record(width)) if line.spans]
        lines += [Line(), self._trainer(width), self._trainer_queue(width), self._staleness(width)]
        lines += self._last_answer(width, max(1, height // 4))
        chart_height = min(12, height - len(lines) - 3)
        if chart_height < 2:
            return lines
        return [*lines, *self._rate_chart(width, chart_height), *self._rate_numbers(width)]

    def _taken_as(self, width: int) -> Line:
        """How the trajectory API took the groups, and when it took the last one."""
        by_reason = self.moment.snapshot.ledger.by_reason.get(Outcome.DELIVERED, {})
        parts = [Line(formatting.count(many), dim(f" {formatting.words(word)}")) for word, many in by_reason.items()]
        if self.sends.last_delivered_at:
            since = formatting.age(self.moment.since(self.sends.last_delivered_at))
            parts.append(Line(dim("the last "), since, dim(" ago")))
        return fact("taken as", join_that_fit(parts, width - 10, " · ")) if parts else Line()

    def _staleness(self, width: int) -> Line:
        """How many steps the policy was ahead of groups when delivered and when taken, and what is before one now."""
        sends, group_size = self.sends, self.moment.snapshot.run.group_size
        if not sends.trainer_step_at or sends.batch_size <= 0:
            return Line()
        queued = sends.trainer_queue * group_size / sends.batch_size
        parts = [Line(f"{sends.policy_lag:.1f}", dim(" steps until delivery"))]
        if sends.lag_when_taken >= 0:
            parts.append(Line(f"{sends.lag_when_taken:.1f}", dim(" until the trainer took them")))
        parts.append(Line(dim("about "), f"{queued:.1f}", dim(" in the queue now")))
        return fact("staleness", join_that_fit(parts, width - 10, " · "))

    def _last_answer(self, width: int, most: int) -> list[Line]:
        """The last error in full, with the body of the answer."""
        sends = self.sends
        if not sends.last_error:
            return []
        text = visible(f"{sends.last_error} {sends.last_error_body}".strip())
        first, *rest = [Line(part) for part in wrapped(text, width - 10)][:most]
        return [Line(), fact("error", first), *(fact("", part) for part in rest)]

    def _rate_numbers(self, width: int) -> list[Line]:
        age = int(self.moment.since(self.moment.snapshot.run.started_at))
        history = self.sends.send_rate_history[-max(1, age) :]
        if not any(history):
            return []
        parts = [
            Line(dim("mean "), formatting.rate(sum(history) / len(history))),
            Line(dim("most "), formatting.short_count(max(history))),
            Line(dim("nothing in "), str(sum(value == 0 for value in history)), dim(f" of {len(history)} s")),
        ]
        return [fact("", join_that_fit(parts, width - 10, " · "))]

    def _rate_chart(self, width: int, height: int) -> list[Line]:
        """Deliveries of each second of the last minute."""
        history = self.sends.send_rate_history
        if not any(history):
            return []
        title = fact(
            "rate", Line(dim(f"each second of the last minute, at most {formatting.short_count(max(history))}"))
        )
        each = max(1, (width - 10) // len(history))
        rows = columns([value for value in history for _ in range(each)], width - 10, height)
        return [Line(), title, *(Line(Span(" " * 10)) + row for row in rows)]

    def _api(self) -> Line:
        return fact("api", Line(visible(self.sends.api_url)))

    def _outbox(self, width: int) -> Line:
        sends = self.sends
        if sends.unwritable:
            return fact("outbox", self._unwritable())
        if not sends.outbox:
            everything = "everything is" if width >= _ROOM_FOR_SENTENCE else "all"
            where = f"{everything} with the trainer" if sends.delivered else "nothing was sent yet"
            return fact("outbox", Line("0", dim(f" · {where}")))
        oldest = self.moment.since(sends.oldest_in_outbox_at)
        ink = Ink.WARN if oldest >= _RECENT_ERROR_SECONDS else Ink.TEXT
        waiting_groups = Line(strong(formatting.count(sends.outbox)), dim(" · oldest "))
        return fact("outbox", waiting_groups + Line(Span(formatting.age(oldest), ink)))

    def _unwritable(self) -> Line:
        """Why finished groups don't get into the outbox, and for how long."""
        sends = self.sends
        since = formatting.age(self.moment.since(sends.unwritable_since_at))
        what = Line(Span(f"✗ {visible(sends.unwritable)}", Ink.BAD), dim(f" for {since} · "))
        waits = Line(strong(formatting.count(sends.unwritten)), dim(" wait for room"))
        inside = Line(dim(" · "), formatting.count(sends.outbox), dim(" inside")) if sends.outbox else Line()
        return what + waits + inside + Line(dim(f" · {visible(sends.unwritable_remedy)}"))

    def _delivered(self, width: int) -> Line:
        sends = self.sends
        parts = [Line(formatting.rate(sends.delivered_per_second))]
        if sends.delivered:
            parts.append(Line(dim("p50 "), formatting.duration(sends.latency_p50)))
            parts.append(Line(dim("p95 "), formatting.duration(sends.latency_p95)))
        if sends.buffered:
            parts.append(Line(formatting.count(sends.buffered), dim(" buffered")))
        return fact("delivered", join_that_fit(parts, width - 10, " · "))

    def _bytes(self, width: int) -> Line:
        sends = self.sends
        if not sends.wire_bytes:
            return Line()
        ratio = sends.raw_bytes / sends.wire_bytes
        sent = Line(formatting.size(sends.raw_bytes), dim(" → "), formatting.size(sends.wire_bytes))
        parts = [sent, Line(dim(f"{ratio:.1f}× smaller"))]
        return fact("bytes", join_that_fit(parts, width - 10, " · "))

    def _last_error(self, width: int) -> Line:
        """Retries, refused groups and the last error with the body of its answer."""
        sends = self.sends
        if not (sends.retries or sends.refused or sends.last_error):
            return Line()
        parts = []
        if sends.next_retry_at > self.moment.now:
            parts.append(Line(Span(f"again in {formatting.age(sends.next_retry_at - self.moment.now)}", Ink.WARN)))
        if sends.refused:
            parts.append(Line(Span(f"{formatting.count(sends.refused)} refused", Ink.BAD)))
        if sends.retries:
            parts.append(Line(formatting.plural(sends.retries, "retry", "retries")))
        spare = width - join(parts, " · ").width
        if sends.last_error and (spare >= _ROOM_FOR_ERROR or not parts):
            recent = self.moment.since(sends.last_error_at) < _RECENT_ERROR_SECONDS
            text = visible(f"{sends.last_error} {sends.last_error_body}".strip())
            when = dim(f"{formatting.age(self.moment.since(sends.last_error_at))} ago ")
            parts.append(Line(when, Span(text, Ink.BAD if recent else Ink.DIM)))
        return fact("errors", join(parts, " · ")).fit(width)

    def _record(self, width: int) -> Line:
        """The run file: how large it is, what made room in it, or why it ends early."""
        record = self.moment.snapshot.record
        if not record.level:
            return Line()
        if record.stopped:
            return fact("record", Line(Span(f"stopped: {visible(record.stopped)}", Ink.BAD))).fit(width)
        limit = dim(f" of {formatting.size(record.size_limit)}") if record.size_limit else ""
        missing = {
            "without tokens": record.dropped_arrays,
            "without messages": record.dropped_contents,
            "came too fast": record.missed_contents,
        }
        parts = [Line(formatting.size(record.size), limit)]
        parts += [Line(Span(formatting.count(many), Ink.WARN), dim(f" {how}")) for how, many in missing.items() if many]
        return fact("record", join_that_fit(parts, width - 10, " · "))

    def _trainer(self, width: int) -> Line:
        sends = self.sends
        if not sends.trainer_step_at:
            return fact("trainer", Line(dim("has not reported yet")))
        parts = [
            Line(dim("step "), strong(formatting.count(sends.trainer_step))),
            Line(formatting.age(self.moment.since(sends.trainer_step_at)), dim(" ago")),
            Line(dim("lag "), f"{sends.policy_lag:.1f}", dim(" steps")),
        ]
        if sends.seconds_per_step:
            parts.append(Line(formatting.duration(sends.seconds_per_step), dim(" each")))
        return fact("trainer", join_that_fit(parts, width - 10, " · "))

    def _trainer_queue(self, width: int) -> Line:
        sends = self.sends
        batch = Line(dim("batch "), formatting.count(sends.batch_size))
        if sends.trainer_queue_limit < 0:
            groups = Line(formatting.count(sends.trainer_queue), dim(" groups · no limit"))
            return fact("queue", join_that_fit([groups, batch], width - 10, " · "))
        full = sends.trainer_queue >= sends.trainer_queue_limit
        ink = Ink.WARN if full else Ink.TEXT
        of = f"{formatting.count(sends.trainer_queue)}/{formatting.count(sends.trainer_queue_limit)}"
        numbers = Line(Span(of, ink), dim(" groups"))
        track = gauge(sends.trainer_queue, sends.trainer_queue_limit, max(4, min(16, width - 28)), Ink.ACCENT)
        own = Line(formatting.count(sends.trainer_queue_own), dim(" of this run"))
        shares = [own] if sends.trainer_queue_own < sends.trainer_queue else []
        return fact("queue", join_that_fit([track + Line(" ") + numbers, *shares, batch], width - 10, " · "))
