"""What the screen hears of the inference servers: their health, and every request as it begins and ends."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from atropos_tui.inference.config import APIServerConfig
from atropos_tui.inference.permits import Permits, Split
from atropos_tui.inference.results import Told
from atropos_tui.ledger import EventStream, current_group, current_rollout
from atropos_tui.ledger.events import CallFinished, CallStarted, ServerHealth

NOTHING_TOLD = Told()


class ReportedServer(Protocol):
    """A server as its observers see it."""

    index: int
    config: APIServerConfig
    sem: Permits
    eval_sem: Permits
    healthy: bool | None
    health_detail: str


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way, and who heard that it began; the end is told to the same."""

    stream: EventStream | None
    call_id: int
    group_id: int | None
    rollout: int | None
    server: int
    split: Split
    n: int
    auxiliary: bool
    started: float


class CallLog:
    """Publishes to the attached event stream; says nothing while none is attached.

    `auxiliary` servers are those that an environment made itself.
    """

    def __init__(self) -> None:
        self.stream: EventStream | None = None
        self.auxiliary = False

    def start(self, server: ReportedServer, split: Split, n: int) -> Call:
        group_id, rollout = current_group.get(), current_rollout.get()
        stream = self.stream
        number = stream.number_call() if stream is not None else 0
        call = Call(stream, number, group_id, rollout, server.index, split, n, self.auxiliary, time.monotonic())
        if stream is not None:
            stream.publish(
                CallStarted, call_id=number, group_id=group_id, server=server.index, split=split, n=n,
                auxiliary=self.auxiliary,
            )  # fmt: skip
        return call

    def finish(self, call: Call, told: Told = NOTHING_TOLD, *, error: str = "", error_kind: str = "") -> None:
        if call.stream is None:
            return
        call.stream.publish(
            CallFinished,
            call_id=call.call_id,
            group_id=call.group_id,
            rollout=call.rollout,
            server=call.server,
            split=call.split,
            n=call.n,
            latency=time.monotonic() - call.started,
            prompt_tokens=told.prompt_tokens,
            completion_tokens=told.completion_tokens,
            finish_reasons=told.finish_reasons,
            weight_version=told.weight_version,
            error=error,
            error_kind=error_kind,
            auxiliary=call.auxiliary,
        )

    def health(self, server: ReportedServer) -> None:
        if self.stream is None:
            return
        self.stream.publish(
            ServerHealth,
            server=server.index,
            url=server.config.base_url or "",
            server_type=server.config.server_type,
            model_name=server.config.model_name,
            healthy=server.healthy,
            detail=server.health_detail,
            limit=server.sem.limit,
            eval_limit=server.eval_sem.limit,
            auxiliary=self.auxiliary,
        )
