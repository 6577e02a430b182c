"""A worker without an environment, whose groups come and go at a given rate: the real monitor with made-up events.

    python -m benchmarks.busy_worker SOCKET --rate 1000 [--blocking]

Prints `ready` once the control API answers on the socket. With `--blocking` the main thread computes between the groups
without ever letting go of its loop, as environment code may. Ends with its standard input.
"""

from __future__ import annotations

import argparse
import itertools
import select
import sys
import time
from pathlib import Path

from atropos_tui.ledger import EventStream, GroupContent, Rollout
from atropos_tui.ledger.events import (
    CallFinished,
    CallStarted,
    GroupDelivered,
    GroupEnqueued,
    GroupScored,
    GroupSkipped,
    GroupStarted,
    RunStarted,
    StateChanged,
    TrainerStatus,
)
from atropos_tui.ledger.outcomes import DeliveredAs, RunState, SkipReason
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.monitor_thread import MonitorThread
from atropos_tui.monitor.run_view import RunView
from benchmarks.no_commands import NoCommands

GROUP = 8
TOKENS = 64
IN_FLIGHT = 32
TURN_SECONDS = 0.005


def run(socket: Path, rate: float, blocking: bool) -> None:
    view = RunView(MemoryGroupStore())
    monitor = MonitorThread(view, NoCommands(), socket, decode=lambda ids: [f"{number} " for number in ids])
    monitor.start()
    stream = EventStream(view.collector)
    stream.publish(
        RunStarted, run_id="busy", environment="Busy", file="busy.py", pid=1, group_size=GROUP, total_steps=1000,
        max_token_length=2048, tokenizer_name="",
    )  # fmt: skip
    stream.publish(StateChanged, state=RunState.RUNNING)
    print("ready", flush=True)
    began = time.perf_counter()
    for group_id in itertools.count(1):
        begin_group(stream, group_id)
        if group_id > IN_FLIGHT:
            end_group(stream, group_id - IN_FLIGHT)
        while (ahead := began + group_id / rate - time.perf_counter()) > 0:
            if blocking:
                compute(min(ahead, TURN_SECONDS))
            elif select.select([sys.stdin], [], [], ahead)[0]:
                return
        if group_id % 64 == 0 and select.select([sys.stdin], [], [], 0)[0]:
            return


def begin_group(stream: EventStream, group_id: int) -> None:
    stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=GROUP, step=group_id // 100)
    stream.publish(CallStarted, call_id=group_id, group_id=group_id, server=0, split="train", n=GROUP)


def end_group(stream: EventStream, group_id: int) -> None:
    """Every tenth is skipped."""
    stream.publish(
        CallFinished, call_id=group_id, group_id=group_id, server=0, split="train", n=GROUP, latency=0.5,
        prompt_tokens=TOKENS, completion_tokens=GROUP * TOKENS, finish_reasons=("stop",) * GROUP,
    )  # fmt: skip
    scores = tuple(((group_id * 7 + rollout * 3) % 11) / 10 for rollout in range(GROUP))
    rollout = Rollout(score=scores[0], tokens=list(range(TOKENS)), masks=list(range(TOKENS)), finish_reason="stop")
    stream.keep(GroupContent(group_id, f"item {group_id}", (rollout,) * GROUP))
    stream.publish(GroupScored, group_id=group_id, scores=scores, completion_tokens=(TOKENS,) * GROUP)
    if group_id % 10 == 0:
        stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.IDENTICAL_SCORES)
        return
    stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=100_000, wire_bytes=30_000)
    stream.publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.01, attempts=1)
    if group_id % 8 == 0:
        stream.publish(
            TrainerStatus, step=group_id // 8, batch_size=64, queue_size=group_id % 12, queue_limit=36,
            self_queue_size=group_id % 12, env_weight=1.0, unallocated_fraction=0.0,
        )  # fmt: skip


def compute(seconds: float) -> None:
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at:
        sum(range(500))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket", type=Path)
    parser.add_argument("--rate", type=float, default=1000.0, help="groups a second")
    parser.add_argument("--blocking", action="store_true", help="never let go of the loop")
    arguments = parser.parse_args()
    run(arguments.socket, arguments.rate, arguments.blocking)
