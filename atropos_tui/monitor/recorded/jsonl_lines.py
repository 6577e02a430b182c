"""The lines of a JSONL file of scored groups, told to the model of a run as if each group had just been delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from atropos_tui.ledger import Clock, EventStream
from atropos_tui.ledger.content import GroupContent, Rollout
from atropos_tui.ledger.events import (
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupScored,
    GroupStarted,
    LogLine,
    RunEnded,
    RunStarted,
    StateChanged,
)
from atropos_tui.ledger.outcomes import DeliveredAs, RunState
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.snapshot import RunSnapshot


@dataclass(frozen=True, slots=True)
class JsonlLine:
    """What the model has to know of a line: where it lies in the file (bytes), and the group on it or what is wrong.

    `parts` are, of each rollout that tells parts of its score, that score and these.
    """

    number: int
    offset: int
    size: int
    item: str = ""
    rollouts: int = 0
    scores: tuple[float, ...] = ()
    completion_tokens: tuple[int, ...] = ()
    finishes: tuple[str, ...] = ()
    parts: tuple[tuple[float | None, Mapping[str, float]], ...] = ()
    fault: str = ""


class ToldLines:
    """A model that is told lines one after the other. The file tells no times: all have that of its last change."""

    def __init__(self, name: str, path: str, changed_at: float) -> None:
        self._name = name
        self._model = Model()
        # The number of the last line.
        self.told = 0
        self._clock = _FileClock(changed_at, lambda: self.told)
        self._stream = EventStream(_Sink(self._apply), clock=self._clock)
        self._ended: EndedGroup | None = None
        self._groups = 0
        self._stream.publish(
            RunStarted, run_id=name, environment=name.rpartition(".")[0] or name, file=path, pid=0, group_size=0,
            total_steps=0, max_token_length=0, tokenizer_name="",
        )  # fmt: skip
        self._stream.publish(StateChanged, state=RunState.RUNNING)

    def tell(self, line: JsonlLine, content: GroupContent | None = None) -> EndedGroup | None:
        """The group of the line, None where there is none; `content` is all of it, where its tokens are to be seen."""
        self.told = line.number
        publish = self._stream.publish
        if line.fault:
            publish(LogLine, level="WARNING", logger=self._name, text=f"line {line.number} is {line.fault}")
            return None
        if not line.rollouts:
            return None
        group_id = line.number
        publish(GroupStarted, group_id=group_id, item=line.item, rollouts=line.rollouts, step=0)
        self._model.note_content(group_id, line.finishes)
        publish(GroupScored, group_id=group_id, scores=line.scores, completion_tokens=line.completion_tokens)
        parts = tuple(Rollout(score, parts=of_one) for score, of_one in line.parts)
        # Times in the file are as good as equal, and so would be those of all looks.
        self._model.look(content or GroupContent(group_id, line.item, parts), float(line.number))
        publish(GroupEnqueued, group_id=group_id, raw_bytes=line.size, wire_bytes=line.size)
        publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.0, attempts=1)
        self._groups += 1
        return self._ended

    def finish(self) -> None:
        """Say that this is all for now."""
        self._stream.publish(RunEnded, state=RunState.FINISHED, why=f"{self._groups} groups of {self._name}")

    def snapshot(self) -> RunSnapshot:
        return self._model.snapshot(self._clock.monotonic(), self._clock.wall())

    def _apply(self, event: EventBase) -> None:
        if (ended := self._model.apply(event)) is not None:
            self._ended = ended


class _Sink:
    """Contents stay in the file, so only events are taken."""

    def __init__(self, publish: Callable[[EventBase], None]) -> None:
        self.publish = publish

    def keep(self, content: GroupContent) -> None:
        del content


@dataclass(frozen=True, slots=True)
class _FileClock(Clock):
    """The time of the file's last change, and a little more with each line, so that lines have an order."""

    changed_at: float
    line: Callable[[], int]

    def monotonic(self) -> float:
        return 1000.0 + self.line() * 1e-6

    def wall(self) -> float:
        return self.changed_at + self.line() * 1e-6
