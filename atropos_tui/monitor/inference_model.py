"""Inference servers: health, load, latency and errors of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from atropos_tui.ledger.events import CallFinished, CallStarted, ServerHealth
from atropos_tui.monitor.bounded_text import ERROR_LENGTH, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import InferenceSection, ServerRow
from atropos_tui.monitor.windows import RecentAmounts, RecentDurations

MAX_SERVERS = 256


@dataclass(slots=True)
class _Server:
    health: ServerHealth | None = None
    in_flight: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    errors: int = 0
    latencies: RecentDurations = field(default_factory=lambda: RecentDurations(max_age=60.0))
    tokens: RecentAmounts = field(default_factory=RecentAmounts)
    last_error: str = ""
    last_error_at: float | None = None
    weight_version: int | None = None


class InferenceModel:
    """Servers are numbered from 0 by the runtime; those beyond `MAX_SERVERS` are left out."""

    def __init__(self) -> None:
        self._servers: dict[int, _Server] = {}

    def handlers(self) -> Handlers:
        return {ServerHealth: self._health, CallStarted: self._call_started, CallFinished: self._call_finished}

    def section(self, now: Instant) -> InferenceSection:
        return InferenceSection(tuple(self._row(number, now) for number in sorted(self._servers)))

    def _row(self, number: int, now: Instant) -> ServerRow:
        server = self._servers[number]
        health = server.health
        p50, p95 = server.latencies.percentiles(now.mono)
        return ServerRow(
            server=number,
            url=one_line(health.url, ERROR_LENGTH) if health else "",
            server_type=health.server_type if health else "",
            model_name=one_line(health.model_name, ERROR_LENGTH) if health else "",
            healthy=health.healthy if health else None,
            detail=one_line(health.detail, ERROR_LENGTH) if health else "",
            in_flight=server.in_flight["train"],
            limit=health.limit if health else 0,
            eval_in_flight=server.in_flight["eval"],
            eval_limit=health.eval_limit if health else 0,
            requests=server.requests,
            errors=server.errors,
            latency_p50=p50,
            latency_p95=p95,
            tokens_per_second=server.tokens.per_second(now.mono),
            last_error=server.last_error,
            last_error_at=now.at(server.last_error_at),
            weight_version=server.weight_version,
            auxiliary=health.auxiliary if health else False,
        )

    def _server(self, number: int) -> _Server | None:
        if number not in self._servers and len(self._servers) >= MAX_SERVERS:
            return None
        return self._servers.setdefault(number, _Server())

    def _health(self, event: ServerHealth) -> None:
        if (server := self._server(event.server)) is not None:
            server.health = event

    def _call_started(self, event: CallStarted) -> None:
        if (server := self._server(event.server)) is not None:
            server.in_flight[event.split] += 1
            server.requests += 1

    def _call_finished(self, event: CallFinished) -> None:
        if (server := self._server(event.server)) is None:
            return
        server.in_flight[event.split] = max(0, server.in_flight[event.split] - 1)
        if event.error:
            server.errors += 1
            server.last_error = one_line(event.error, ERROR_LENGTH)
            server.last_error_at = event.mono
            return
        server.latencies.add(event.mono, event.latency)
        server.tokens.add(event.mono, event.completion_tokens)
        if event.weight_version is not None:
            server.weight_version = event.weight_version
