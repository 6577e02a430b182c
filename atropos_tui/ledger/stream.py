"""The way of events from the runtime to whoever watches it.

Observers get copies and can neither delay nor break the way from environment to trainer: a sink must return at once
and must not raise.
"""

from __future__ import annotations

import itertools
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from atropos_tui.ledger.content import GroupContent
from atropos_tui.ledger.events import EventBase
from atropos_tui.ledger.ledger import Ledger, LedgerCounts

E = TypeVar("E", bound=EventBase)

# The group that the running task works for, so that calls to inference servers can be put down to it.
current_group: ContextVar[int | None] = ContextVar("current_group", default=None)
# Which of the group's rollouts it works for, from 0; None where it works for all of them, or nobody knows.
current_rollout: ContextVar[int | None] = ContextVar("current_rollout", default=None)


class Sink(Protocol):
    """Where events and contents go. Called on the runtime's thread, or on any other that publishes."""

    def publish(self, event: EventBase) -> None: ...

    def keep(self, content: GroupContent) -> None: ...


class NullSink:
    """Nobody watches."""

    def publish(self, event: EventBase) -> None:
        del event

    def keep(self, content: GroupContent) -> None:
        del content


@dataclass(frozen=True, slots=True)
class Clock:
    """The two clocks of an event, injectable: seconds that never jump, and Unix seconds for people."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class EventStream:
    """Stamps events, keeps the ledger, hands both events and contents to the sink. Safe from any thread."""

    def __init__(self, sink: Sink | None = None, clock: Clock | None = None, first_seq: int = 1) -> None:
        self._sink: Sink = NullSink() if sink is None else sink
        self._clock = clock or Clock()
        self._next_seq = first_seq
        self._ledger = Ledger()
        self._servers = 0
        self._calls = itertools.count(1)
        # Reentrant: making an event can log, and a handler of logs publishes.
        self._lock = threading.RLock()

    def publish(self, event_type: type[E], **fields: Any) -> E:
        """Make, count and hand on one event. Raises pydantic's ValidationError when the fields don't fit the type."""
        with self._lock:
            event = event_type(seq=self._next_seq, mono=self._clock.monotonic(), wall=self._clock.wall(), **fields)
            self._next_seq += 1
            self._ledger.apply(event)
            self._sink.publish(event)
        return event

    def keep(self, content: GroupContent) -> None:
        self._sink.keep(content)

    def number_servers(self, count: int) -> int:
        """The first of `count` numbers, from 0, that no other inference server of the run has."""
        with self._lock:
            first = self._servers
            self._servers += count
        return first

    def number_call(self) -> int:
        """The number of the next request to an inference server, from 1."""
        return next(self._calls)

    def counts(self) -> LedgerCounts:
        with self._lock:
            return self._ledger.counts()

    @property
    def violations(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._ledger.violations)
