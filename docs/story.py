"""A run told in events on a clock of its own, behind the real monitor: for pictures that must not wait.

What the screen shows of it comes through the same model, store and control API as with a worker.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atropos_tui.ledger import Clock, EventStream, GroupContent, Rollout
from atropos_tui.ledger.events import (
    CallFinished,
    CallStarted,
    GroupDelivered,
    GroupEnqueued,
    GroupFailed,
    GroupScored,
    GroupSkipped,
    GroupStarted,
    RunConfigured,
    RunStarted,
    ServerHealth,
    StateChanged,
    ThrottleChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import DeliveredAs, FailReason, RunState, ScoreSplit, SkipReason, ThrottleReason
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.monitor_thread import MonitorThread
from atropos_tui.monitor.run_view import RunView
from benchmarks.no_commands import NoCommands

BEGAN = 1_790_000_000.0
GROUP = 8
SERVERS = ("http://10.0.0.5:9001/v1", "http://10.0.0.6:9001/v1")
_WORDS = ("apples", "pears", "crates", "boxes", "shelves", "rows", "bags", "coins", "stamps", "cards")


@dataclass(frozen=True, slots=True)
class StoryClock(Clock):
    """Stands still at the one number in `now`."""

    now: list[float]

    def monotonic(self) -> float:
        return self.now[-1]

    def wall(self) -> float:
        return BEGAN + self.now[-1]


class Story:
    """`at` moves the clock; everything told happens at that moment."""

    def __init__(self, environment: str = "arithmetic") -> None:
        self.clock = StoryClock([0.0])
        self.view = RunView(MemoryGroupStore(), self.clock)
        self.chance = random.Random(7)
        self._stream = EventStream(self.view.collector, self.clock)
        self._items: dict[int, str] = {}
        self._calls = 0
        self._tell(
            RunStarted, run_id="a2c9", environment=environment, file=f"{environment}.py", pid=4711, group_size=GROUP,
            total_steps=2000, max_token_length=2048, tokenizer_name="",
        )  # fmt: skip
        for server in range(len(SERVERS)):
            self.server(server, healthy=True)
        self._tell(
            RunConfigured, api_url="http://localhost:8000", env_id=0, starting_step=0, total_steps=2000, batch_size=64,
            max_token_len=2048,
        )  # fmt: skip
        self._tell(StateChanged, state=RunState.RUNNING)

    def at(self, seconds: float) -> None:
        self.view.drain()
        self.clock.now[:] = [seconds]

    def server(self, number: int, *, healthy: bool, detail: str = "", judge: str = "") -> None:
        """`judge`: the address of a server that the environment made itself."""
        self._tell(
            ServerHealth, server=number, url=judge or SERVERS[number], server_type="openai" if judge else "vllm",
            model_name="judge" if judge else "Qwen3-4B", healthy=healthy, detail=detail, limit=128, eval_limit=16,
            auxiliary=bool(judge),
        )  # fmt: skip

    def trainer(self, step: int, queue: int, limit: int = 36) -> None:
        self._tell(
            TrainerStatus, step=step, batch_size=64, queue_size=queue, queue_limit=limit, self_queue_size=queue,
            env_weight=1.0, unallocated_fraction=0.0,
        )  # fmt: skip

    def throttle(self, reason: ThrottleReason | None, detail: str = "") -> None:
        self._tell(ThrottleChanged, reason=reason, limit=32, detail=detail)

    def begins(self, item: str = "", step: int = 0) -> int:
        """A group starts; returns its number."""
        group_id, many, people = len(self._items) + 1, self.chance.randint(20, 97), self.chance.randint(3, 12)
        what = self.chance.choice(_WORDS)
        item = item or f"{many} {what} are shared among {people}. How many are left over?"
        self._items[group_id] = item
        self._tell(GroupStarted, group_id=group_id, item=item, rollouts=GROUP, step=step)
        return group_id

    def calls(self, group_id: int, *, server: int = 0, n: int = GROUP) -> dict[str, Any]:
        """A request of the group to a server begins; returns what names it."""
        self._calls += 1
        call = {"call_id": self._calls, "group_id": group_id, "server": server, "split": "train", "n": n}
        call["auxiliary"] = server >= len(SERVERS)
        self._tell(CallStarted, **call)
        return call

    def called(self, group_id: int, *, server: int = 0, tokens: int = 900, n: int = GROUP, error: str = "") -> None:
        """One request of the group to a server, from its beginning to its end."""
        call = self.calls(group_id, server=server, n=n)
        kind = "connect" if error else ""
        self._tell(CallFinished, **call, latency=1.4, completion_tokens=tokens, error=error, error_kind=kind)

    def ends(self, group_id: int, answers: Sequence[tuple[str, float]], trained: Sequence[str] = ()) -> None:
        """Its rollouts say `answers`, each with its score: it is scored, and delivered or skipped for equal scores."""
        content = content_of(group_id, self._items[group_id], answers, trained)
        lengths = tuple(sum(mask != -100 for mask in rollout.masks) for rollout in content.rollouts)
        scores = tuple(score for _, score in answers)
        self._stream.keep(content)
        self._tell(GroupScored, group_id=group_id, scores=scores, completion_tokens=lengths)
        if len(set(scores)) == 1:
            split = {1.0: ScoreSplit.ALL_BEST, 0.0: ScoreSplit.ALL_WORST}.get(scores[0], ScoreSplit.ALL_EQUAL)
            self._tell(GroupSkipped, group_id=group_id, reason=SkipReason.IDENTICAL_SCORES, split=split)
            return
        self._tell(GroupEnqueued, group_id=group_id, raw_bytes=90_000, wire_bytes=26_000)
        self._tell(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.02, attempts=1)

    def fails(self, group_id: int, reason: FailReason, error: str) -> None:
        self._tell(GroupFailed, group_id=group_id, reason=reason, error=error)

    @contextmanager
    def watched(self) -> Iterator[str]:
        """The address at which the screen can attach."""
        with tempfile.TemporaryDirectory() as directory:
            socket = Path(directory) / "control.sock"
            monitor = MonitorThread(self.view, NoCommands(), socket, decode=pieces)
            monitor.start()
            try:
                yield str(socket)
            finally:
                monitor.close()

    def _tell(self, kind: Any, **fields: Any) -> None:
        self._stream.publish(kind, **fields)


def content_of(
    group_id: int, item: str, answers: Sequence[tuple[str, float]], trained: Sequence[str] = ()
) -> GroupContent:
    """A group whose rollouts say `answers`, each with its score; a token is a character.

    `trained` is what was made of them for the trainer, where that is something else.
    """
    rollouts = []
    for (answer, score), kept in zip(answers, trained or [text for text, _ in answers], strict=True):
        prompt, reply = [ord(letter) for letter in f"{item}\n"], [ord(letter) for letter in kept]
        rollouts.append(
            Rollout(
                score=score,
                tokens=prompt + reply,
                masks=[-100] * len(prompt) + reply,
                logprobs=[1.0] * len(prompt) + [-0.02 * (position % 9) for position in range(len(reply))],
                messages=[{"role": "user", "content": item}, {"role": "assistant", "content": answer}],
                finish_reason="stop",
            )
        )
    return GroupContent(group_id, item, tuple(rollouts))


def pieces(ids: Sequence[int]) -> list[str]:
    return [chr(number) for number in ids]
