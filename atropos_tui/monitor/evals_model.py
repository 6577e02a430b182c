"""Evaluations: the one that runs, and what the earlier ones found."""

from __future__ import annotations

from collections import deque
from itertools import islice

from atropos_tui.ledger.events import EvalEnded, EvalStarted
from atropos_tui.monitor.bounded_text import ERROR_LENGTH, bounded_tail, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import EvalRow, EvalsSection

MAX_EVALS = 50
MAX_METRICS = 64
TRACEBACK_LENGTH = 6_000


class EvalsModel:
    def __init__(self) -> None:
        self._rows: deque[EvalRow] = deque(maxlen=MAX_EVALS)
        self._running: EvalStarted | None = None

    def handlers(self) -> Handlers:
        return {EvalStarted: self._started, EvalEnded: self._ended}

    def section(self, now: Instant) -> EvalsSection:
        return EvalsSection(
            rows=tuple(self._rows),
            running_since_at=now.at(self._running.mono) if self._running else 0.0,
            running_step=self._running.step if self._running else 0,
        )

    def _started(self, event: EvalStarted) -> None:
        self._running = event

    def _ended(self, event: EvalEnded) -> None:
        self._running = None
        self._rows.appendleft(
            EvalRow(
                step=event.step,
                at=round(event.wall, 3),
                seconds=round(event.seconds, 3),
                metrics={one_line(name, 100): value for name, value in islice(event.metrics.items(), MAX_METRICS)},
                error=one_line(event.error, ERROR_LENGTH),
                traceback=bounded_tail(event.traceback, TRACEBACK_LENGTH),
            )
        )
