"""A run that is recorded: events go through a real view and recorder into a real file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from atropos_tui.ledger import Clock, EventStream, GroupContent, Rollout
from atropos_tui.ledger.events import (
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupScored,
    GroupSkipped,
    GroupStarted,
    RunStarted,
    StateChanged,
)
from atropos_tui.ledger.outcomes import DeliveredAs, FailReason, RunState, SkipReason
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.run_file.recorder import Recorder
from atropos_tui.monitor.run_file.resume import begun_in
from atropos_tui.monitor.run_file.writer import RecordLevel
from atropos_tui.monitor.run_view import RunView

LIMIT = 60.0


def wait_until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < deadline, f"never {what}"
        time.sleep(0.01)


def rollouts(score: float, tokens: int = 20, text: str = "an answer", count: int = 2) -> tuple[Rollout, ...]:
    """Two by default, that differ in their score and their last message."""
    prompt = list(range(tokens // 2))
    return tuple(
        Rollout(
            score=score + index,
            tokens=prompt + [1000 + index + place for place in range(tokens - len(prompt))],
            masks=[-100] * len(prompt) + [1000 + index + place for place in range(tokens - len(prompt))],
            logprobs=[1.0] * len(prompt) + [-0.5] * (tokens - len(prompt)),
            messages=[{"role": "user", "content": "the question"}, {"role": "assistant", "content": f"{text} {index}"}],
            finish_reason="stop",
            parts={"format": 0.5},
        )
        for index in range(count)
    )


class RecordedRun:
    """One life of a run whose events the test makes."""

    def __init__(
        self,
        path: Path,
        level: RecordLevel = RecordLevel.ALL,
        *,
        memory: MemoryGroupStore | None = None,
        first_group: int = 1,
        clock: Clock | None = None,
        **recorder_options: Any,
    ) -> None:
        self.path = path
        begun = begun_in(path)
        recorder_options.setdefault("content_share", 1e6)
        self.recorder = Recorder(path, level, ended_before=begun.groups, **recorder_options)
        store = memory or MemoryGroupStore(ended_before=begun.groups)
        self.view = RunView(store, recorder=self.recorder, clock=clock)
        self.stream = EventStream(self.view.collector, clock=clock, first_seq=begun.events + 1)
        self.recorder.start(begun.events + 1, pid=7, started_at=clock.wall() if clock else time.time())
        self.stream.publish(
            RunStarted, run_id="run-1", environment="Env", file="env.py", pid=7, group_size=2, total_steps=10,
            max_token_length=64, tokenizer_name="pocket", config={"group_size": 2}, versions={"atropos-tui": "1"},
        )  # fmt: skip
        self.stream.publish(StateChanged, state=RunState.RUNNING)
        self._group_id = first_group - 1

    def started(self, group_id: int | None = None) -> int:
        self._group_id = self._group_id + 1 if group_id is None else group_id
        self.stream.publish(GroupStarted, group_id=self._group_id, item=f"item {self._group_id}", rollouts=2, step=3)
        return self._group_id

    def content(self, group_id: int, content: Sequence[Rollout]) -> None:
        self.stream.keep(GroupContent(group_id, f"item {group_id}", tuple(content)))
        self.stream.publish(
            GroupScored,
            group_id=group_id,
            scores=tuple(rollout.score for rollout in content),
            completion_tokens=tuple(len(rollout.tokens) for rollout in content),
        )

    def enqueued(self, *, score: float = 0.5, **options: Any) -> int:
        group_id = self.started()
        self.content(group_id, rollouts(score, **options))
        self.stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=100, wire_bytes=50)
        return group_id

    def end(self, group_id: int, content: Sequence[Rollout]) -> None:
        """A started group is delivered with this content."""
        self.content(group_id, content)
        self.stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=100, wire_bytes=50)
        self.deliver(group_id)

    def take_over(self, group_id: int) -> None:
        """As the sender does with what an earlier life left in the outbox."""
        self.started(group_id)
        self.stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=100, wire_bytes=50)

    def delivered(self, **options: Any) -> int:
        group_id = self.enqueued(**options)
        self.deliver(group_id)
        return group_id

    def deliver(self, group_id: int) -> None:
        self.stream.publish(
            GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.01, attempts=1
        )  # fmt: skip

    def skipped(self, **options: Any) -> int:
        group_id = self.started()
        self.content(group_id, rollouts(options.pop("score", 0.0), **options))
        self.stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.IDENTICAL_SCORES)
        return group_id

    def failed(self) -> int:
        group_id = self.started()
        self.stream.publish(
            GroupFailed, group_id=group_id, reason=FailReason.ENV_ERROR, error="KeyError: 'x'", traceback="Traceback …"
        )
        return group_id

    def write(self) -> None:
        """Everything that happened is in the file."""
        while self.view.drain():
            pass
        newest = self.stream.publish(StateChanged, state=RunState.RUNNING).seq
        self.view.drain()
        wait_until(lambda: self.recorder.section().seq >= newest, "written")

    def close(self) -> None:
        while self.view.drain():
            pass
        self.view.record_moment(last=True)
        self.recorder.close()
