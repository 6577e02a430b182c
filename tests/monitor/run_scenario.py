"""A run made of events with a clock that stands still until it is told to go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from atropos_tui.ledger import EventStream, GroupContent
from atropos_tui.ledger.events import (
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupScored,
    GroupSkipped,
    GroupStarted,
    RunStarted,
    StateChanged,
)
from atropos_tui.ledger.outcomes import DeliveredAs, FailReason, RunState, ScoreSplit, SkipReason
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.snapshot import RunSnapshot

E = TypeVar("E", bound=EventBase)

WALL_START = 1_800_000_000.0


class ManualClock:
    """`mono` starts at 1000 s, so that zero is never mistaken for a time."""

    def __init__(self) -> None:
        self.mono = 1000.0
        self.wall_offset = WALL_START - self.mono

    def monotonic(self) -> float:
        return self.mono

    def wall(self) -> float:
        return self.mono + self.wall_offset


@dataclass
class _ModelSink:
    model: Model
    ended: list[EndedGroup] = field(default_factory=list)

    def publish(self, event: EventBase) -> None:
        if (ended := self.model.apply(event)) is not None:
            self.ended.append(ended)

    def keep(self, content: GroupContent) -> None:
        self.model.note_content(content.group_id)


class Scenario:
    """Publishes events through a real EventStream straight into a Model."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.model = Model()
        self._sink = _ModelSink(self.model)
        self.stream = EventStream(self._sink, clock=self.clock)  # type: ignore[arg-type]  # it has the two methods
        self._next_group = 1

    def after(self, seconds: float) -> Scenario:
        self.clock.mono += seconds
        return self

    def publish(self, event_type: type[E], **fields: Any) -> E:
        return self.stream.publish(event_type, **fields)

    def snapshot(self) -> RunSnapshot:
        return self.model.snapshot(self.clock.monotonic(), self.clock.wall())

    @property
    def ended(self) -> list[EndedGroup]:
        return self._sink.ended

    def run_started(self, **fields: Any) -> None:
        facts: dict[str, Any] = {
            "run_id": "reverse-1", "environment": "ReverseEnv", "file": "envs/reverse.py", "pid": 7, "group_size": 4,
            "total_steps": 100, "max_token_length": 64, "tokenizer_name": "pocket",
        }  # fmt: skip
        self.publish(RunStarted, **(facts | fields))
        self.publish(StateChanged, state=RunState.RUNNING)

    def start_group(self, item: str = "item", rollouts: int = 4, step: int = 0) -> int:
        group_id = self._next_group
        self._next_group += 1
        self.publish(GroupStarted, group_id=group_id, item=item, rollouts=rollouts, step=step)
        return group_id

    def score(self, group_id: int, *scores: float, tokens: int = 10, truncated: int = 0) -> None:
        self.publish(
            GroupScored, group_id=group_id, scores=scores, completion_tokens=(tokens,) * len(scores),
            truncated=truncated,
        )  # fmt: skip

    def scored_group(self, *scores: float, **fields: Any) -> int:
        group_id = self.start_group()
        self.score(group_id, *scores, **fields)
        return group_id

    def enqueue(self, group_id: int) -> None:
        self.publish(GroupEnqueued, group_id=group_id, raw_bytes=1000, wire_bytes=400)

    def deliver(self, group_id: int, latency: float = 0.05, reason: DeliveredAs = DeliveredAs.RECEIVED) -> None:
        self.publish(GroupDelivered, group_id=group_id, reason=reason, latency=latency, attempts=1)

    def delivered_group(self, *scores: float) -> int:
        group_id = self.scored_group(*scores)
        self.enqueue(group_id)
        self.deliver(group_id)
        return group_id

    def skip(
        self, group_id: int, reason: SkipReason = SkipReason.IDENTICAL_SCORES, split: ScoreSplit | None = None
    ) -> None:
        self.publish(GroupSkipped, group_id=group_id, reason=reason, split=split, detail="as told")

    def fail(self, group_id: int, error: str = "KeyError: 'x'") -> None:
        self.publish(
            GroupFailed, group_id=group_id, reason=FailReason.ENV_ERROR, error=error, traceback=f"Traceback …\n{error}"
        )
