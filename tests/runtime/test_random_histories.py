"""Whatever happens in whatever order, every group that was started has exactly one outcome and no item is lost.

Each example is a whole run, from registration to the end, against a trajectory API on a wire without sockets. CI runs a
few hundred; `ATROPOS_HISTORIES=2000 pytest tests/runtime/test_random_histories.py` runs as many as one likes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atropos_tui.errors import AtroposError, InferenceError
from atropos_tui.ledger import Outcome
from atropos_tui.runtime import author_calls, trainer_watch
from atropos_tui.runtime.backoff import Backoff
from atropos_tui.runtime.config import BaseEnvConfig
from atropos_tui.runtime.tokenizer import load_tokenizer
from tests.runtime.serving_parts import RecordedEvents, ScriptedEnv, good_group, until, watched

HISTORIES = int(os.environ.get("ATROPOS_HISTORIES", "120"))

WHAT_ITEMS_DO = (
    "good", "good", "slow", "same", "none", "empty", "list", "half list", "nan", "short mask", "raise", "inference",
    "leak", "exit", "hang", "cling", "backlog", "odd",
)  # fmt: skip
WHAT_HAPPENS = (
    "wait", "wait", "pause", "pause now", "resume", "step", "evaluate", "evaluate now", "cancel", "requeue",
    "trainer step", "api down", "api up", "api 503", "api refuses", "api forgets", "api restarts", "reply lost",
)  # fmt: skip


class Wire:
    """The trajectory API as a handler of requests; keeps what it accepted by idempotency key."""

    def __init__(self) -> None:
        self.state = "up"
        self.step = 0
        self.env_id = 0
        self.knows_it = False
        self.accepted: Counter[str] = Counter()
        self.lose_replies = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.state == "down":
            raise httpx.ConnectError("refused", request=request)
        if self.state == "503":
            return httpx.Response(503, text="busy")
        path = request.url.path
        if path == "/register-env":
            self.env_id += 1
            self.knows_it = True
            return httpx.Response(200, json=self._registration())
        if path == "/info":
            return httpx.Response(200, json={"batch_size": 64, "max_token_len": 100})
        if path == "/status-env":
            if not self._knows(json.loads(request.content)):
                return httpx.Response(404, json={"error": "unknown environment"})
            return httpx.Response(200, json={"current_step": self.step, "queue_size": 0, "env_weight": 1.0})
        return self._scored(request) if path == "/scored_data" else httpx.Response(200, json={"status": "success"})

    def _knows(self, body: dict[str, Any]) -> bool:
        return self.knows_it and body["env_id"] == self.env_id

    def _registration(self) -> dict[str, Any]:
        return {
            "status": "success", "env_id": self.env_id, "wandb_name": "x_0", "checkpoint_dir": "", "starting_step": 0,
            "checkpoint_interval": -1, "num_steps": 1000,
        }  # fmt: skip

    def _scored(self, request: httpx.Request) -> httpx.Response:
        if self.state == "refuses":
            return httpx.Response(422, json={"detail": "no"})
        body = request.content
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if not self._knows(json.loads(body)):
            return httpx.Response(404, json={"error": "unknown environment"})
        self.accepted[request.headers["idempotency-key"]] += 1
        if self.lose_replies:
            self.lose_replies -= 1
            raise httpx.ReadError("connection reset", request=request)
        return httpx.Response(200, json={"status": "received"})


async def do(item: tuple[int, str]) -> Any:
    """What the environment's code does with an item."""
    match item[1]:
        case "slow":
            await asyncio.sleep(0.01)
        case "same":
            return {**good_group(2), "scores": [1.0, 1.0]}, []
        case "none":
            return None, []
        case "empty":
            return [], []
        case "list":
            return [good_group(2), good_group(2), good_group(2)], []
        case "half list":
            return [good_group(2), None, {**good_group(2), "scores": [1.0]}], []
        case "nan":
            return {**good_group(2), "scores": [float("nan"), 1.0]}, []
        case "short mask":
            return {**good_group(2), "masks": [[1], [2]]}, []
        case "raise":
            raise KeyError("x")
        case "inference":
            raise InferenceError("server is away", kind="connect")
        case "leak":
            raise asyncio.CancelledError
        case "exit":
            raise SystemExit(1)
        case "hang":
            await asyncio.Event().wait()
        case "cling":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return good_group(2), []
        case "backlog":
            return good_group(2), [(1000 + item[0], "good"), (2000 + item[0], "none")]
        case "odd":
            return "not a pair"
    return good_group(2), []


async def happen(what: str, env: ScriptedEnv, wire: Wire) -> None:
    match what:
        case "wait":
            await asyncio.sleep(0.004)
        case "pause":
            env.control.pause()
        case "pause now":
            env.control.pause_now()
        case "resume":
            env.control.resume()
        case "step":
            env.control.step_group()
        case "evaluate":
            env._runtime.evaluations.start(env.curr_step)
        case "evaluate now":
            with suppress(AtroposError):
                env.control.evaluate()
        case "cancel" | "requeue":
            command = env.control.cancel_group if what == "cancel" else env.control.requeue_group
            with suppress(AtroposError):
                command(int(next(iter(env.running_items), 0)))
        case "trainer step":
            wire.step += 1
        case "api forgets":
            wire.knows_it = False
        case "api restarts":
            wire.knows_it, wire.env_id = False, 100 - wire.env_id
        case "reply lost":
            wire.lose_replies += 1
        case _:
            wire.state = what.removeprefix("api ")
    await asyncio.sleep(0)


async def live(env: ScriptedEnv, wire: Wire, history: list[str], patient: bool, seen: RecordedEvents) -> None:
    """One run: things happen, then all is well again, and the run is stopped; if `patient`, when nothing is left."""

    def at_rest() -> bool:
        throttled = seen.of("throttle_changed")[-1:]
        return not env.workers and not env.backlog and [event.reason for event in throttled] == ["no_items"]

    run = asyncio.create_task(env.env_manager())
    for what in history:
        await happen(what, env, wire)
    wire.state = "up"
    wire.lose_replies = 0
    env.control.resume()
    if patient:
        await until(lambda: run.done() or at_rest())
    env.control.stop()
    await asyncio.wait_for(run, 60)


def check(env: ScriptedEnv, wire: Wire, seen: RecordedEvents) -> None:
    counts = env._runtime.stream.counts()
    assert env._runtime.stream.violations == ()
    assert counts.balanced
    assert counts.by_outcome[Outcome.IN_FLIGHT] == 0
    assert counts.by_outcome[Outcome.IN_OUTBOX] == 0
    assert counts.by_outcome[Outcome.DELIVERED] == len(wire.accepted)
    assert env.cleanups == len([event for event in seen.of("group_started") if event.split_from is None])
    starts = Counter(event.item for event in seen.of("group_started") if event.split_from is None)
    item_of = {event.group_id: event.item for event in seen.of("group_started")}
    requeued = Counter(item_of[event.group_id] for event in seen.of("group_requeued"))
    left = Counter(repr(item) for item in env.backlog)
    for item, count in starts.items():
        assert count + left[item] == requeued[item] + 1, f"{item}: started {count}, put back {requeued[item]}"


@pytest.fixture(scope="module")
def quick_environment(tokenizer_dir: Path) -> Iterator[None]:
    """One tokenizer for all examples, and waits that are short enough for hundreds of runs."""
    tokenizer = load_tokenizer(str(tokenizer_dir))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("atropos_tui.runtime.base_env.load_tokenizer", lambda name: tokenizer)
        patch.setattr(author_calls, "CANCEL_GRACE", 0.5)
        patch.setattr(Backoff, "next_wait", lambda self: 0.01)
        for name, seconds in (("STATUS_SECONDS", 0.03), ("STATUS_SECONDS_IF_WANTED", 0.01), ("TRAINER_SECONDS", 0.01)):
            patch.setattr(trainer_watch, name, seconds)
        yield


@settings(max_examples=HISTORIES, deadline=None)
@given(
    items=st.lists(st.sampled_from(WHAT_ITEMS_DO), max_size=12),
    history=st.lists(st.sampled_from(WHAT_HAPPENS), max_size=14),
    workers=st.integers(1, 4),
    patient=st.booleans(),
)
def test_every_group_has_one_outcome_and_no_item_is_lost(
    quick_environment: None, items: list[str], history: list[str], workers: int, patient: bool
):
    config = BaseEnvConfig(
        use_wandb=False, group_size=2, max_num_workers=workers, worker_timeout=0.03, steps_per_eval=2
    )

    async def example() -> None:
        env = ScriptedEnv(config.model_copy(), [])
        wire = Wire()
        env._runtime.transport = httpx.MockTransport(wire)
        env.items = iter(list(enumerate(items)))
        env.script = do
        seen = watched(env)
        await live(env, wire, history, patient, seen)
        check(env, wire, seen)

    asyncio.run(example())
