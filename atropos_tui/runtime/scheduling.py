"""When groups are started: up to a limit, woken by events, never by cancelling what runs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import FailReason, RequeueReason, RunState, ThrottleReason
from atropos_tui.runtime.author_calls import CANCEL_GRACE
from atropos_tui.runtime.backoff import Backoff, FailureStreak
from atropos_tui.runtime.config import EvalHandlingEnum
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.flight import Flight
from atropos_tui.runtime.throttle import Limit, off_policy_limit, worker_limit

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

HEALTH_CHECK_SECONDS = 0.25
IDLE_LAUNCH_SECONDS = 0.1
SLOW_ITEM_SECONDS = 0.5


class Scheduler:
    """Keeps as many groups of an environment in flight as may be, and says why there are not more.

    `stopping` says why the run ends, empty while it goes on; `waiting_for` what everything waits for, for people.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.stopping = ""
        self.waiting_for = ""
        self.evaluating = False
        self._started = False
        self._runtime = runtime
        self._env = runtime.env
        self._changed = asyncio.Event()
        self.stop_said = asyncio.Event()
        self._stop_at_once = asyncio.Event()
        self._paused = False
        self._paused_by = ""
        self._single_steps = 0
        self._streak = FailureStreak()
        self._items_after = 0.0
        self._item_trouble: Limit | None = None
        self._no_item = Backoff(first=0.1, ceiling=1.0)
        self._bad_item = Backoff(first=0.1, ceiling=30.0)
        self._launching: asyncio.Task[None] | None = None
        self._launching_since = 0.0
        self._launch_after = 0.0

    # -- commands

    def pause(self, by: str, requeue: bool = False) -> None:
        # Who halted the run first stays named until it is resumed.
        if not self._paused:
            self._paused_by = by
        self._paused = True
        self._single_steps = 0
        if requeue:
            self.recall_all(RequeueReason.HARD_PAUSE)
        self.wake()

    def resume(self) -> None:
        self._paused = False
        self._paused_by = ""
        self._single_steps = 0
        self.wake()

    def step(self) -> None:
        if self._paused:
            self._single_steps += 1
            self.wake()

    def stop(self, why: str) -> None:
        if self.stopping:
            self._stop_at_once.set()
        else:
            self.stopping = why
            self.stop_said.set()
        self.wake()

    def recall_one(self, group_id: int, reason: RequeueReason | FailReason) -> None:
        """Cancel one group, as `Flight.recall`. Raises AtroposError unless the environment's code still works on it."""
        running = self._env.running_items.get(str(group_id))
        flight: Flight | None = running["flight"] if running is not None else None
        if flight is not None and flight.recall(reason):
            return
        if flight is None:
            state = "is not in flight"
        elif flight.claimed or flight.settled:
            state = "is finished"
        else:
            state = "is being called off already"
        raise AtroposError(f"group {group_id} {state}", "only a group that is still being made can be called off")

    def note_waiting(self, what: str) -> None:
        """Say what the run waits for and where; empty when that has come."""
        self.waiting_for = what
        self._publish_state()

    def wake(self) -> None:
        """Something changed that decides whether groups may start, or what state the run is in."""
        self._changed.set()

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def started(self) -> bool:
        """Whether groups may be started: setup and registration are done."""
        return self._started

    @property
    def hurried(self) -> bool:
        """Whether the run should end without waiting for anything."""
        return self._stop_at_once.is_set()

    # -- the loop

    async def run(self) -> None:
        """Start groups until something says why to stop."""
        self._started = True
        while not self.stopping:
            self._changed.clear()
            now = time.monotonic()
            limit = self.limit(now)
            if self._may_launch(limit) and self._launching is None and now >= self._launch_after:
                self._launching = asyncio.create_task(self._launch())
                self._launching_since = now
            elif limit.reason is ThrottleReason.OFF_POLICY_LIMIT:
                self._runtime.trainer.want_status()
            self._publish(limit, now)
            await self._wait_for_change(limit, now)
        if self._launching is not None:
            self._launching.cancel()
            self._launching = None

    async def drain(self, grace: float) -> None:
        """Let what is in flight finish for `grace` seconds, or until stop is said again; then put it back."""
        self._publish(Limit(0, ThrottleReason.FINISHING, f"the run ends: {self.stopping}"), time.monotonic())
        again = asyncio.create_task(self._stop_at_once.wait())
        deadline = time.monotonic() + grace
        while self._env.workers and not again.done() and time.monotonic() < deadline:
            left = max(0.0, deadline - time.monotonic())
            await asyncio.wait({*self._env.workers, again}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        again.cancel()
        self.recall_all(RequeueReason.SHUTDOWN)
        await self._end_workers(lambda flight: not flight.settled)
        for worker in self._env.workers:
            worker.cancel()
        await self._end_workers(lambda flight: True)

    async def _end_workers(self, wanted: Callable[[Flight], bool]) -> None:
        """Wait for those workers, as long as code that is cancelled may take."""
        running = [entry["worker"] for entry in self._env.running_items.values() if wanted(entry["flight"])]
        if running:
            await asyncio.wait(running, timeout=2 * CANCEL_GRACE)

    def recall_all(self, reason: RequeueReason) -> None:
        """Cancel what the environment's code still works on, and put the items back into the backlog."""
        for running in list(self._env.running_items.values()):
            running["flight"].recall(reason)

    async def _launch(self) -> None:
        before = len(self._env.workers)
        try:
            await self._runtime.calls.run(self._env.add_train_workers)
        except Exception as error:  # noqa: BLE001  environments override it
            self._item_failed("add_train_workers", error)
        finally:
            self._launching = None
            if len(self._env.workers) <= before:
                self._launch_after = time.monotonic() + IDLE_LAUNCH_SECONDS
            self._changed.set()

    async def _wait_for_change(self, limit: Limit, now: float) -> None:
        """Until woken, or until a wait that was decided on is over."""
        times = [self._items_after, self._streak.resting_until, self._launch_after]
        if limit.reason is ThrottleReason.SERVERS_UNHEALTHY:
            times.append(now + HEALTH_CHECK_SECONDS)
        times.append(self._runtime.report.throttle_due_at())
        if self._launching is not None:
            times.append(self._launching_since + SLOW_ITEM_SECONDS)
        ahead = [moment - now for moment in times if moment > now]
        # Not wait_for, which before Python 3.12 may swallow a cancellation.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(ahead, default=None)):
                await self._changed.wait()

    # -- limits

    def limit(self, now: float) -> Limit:
        """The tightest limit on groups in flight; of equal ones the one that an operator should hear of first."""
        others = (self._server_limit(), self._outbox_limit(), self._streak_limit(now), self._item_limit(now))
        limit = self._pause_limit() or self._capacity()
        for other in (self._capacity(), *others):
            limit = limit.or_tighter(other)
        return limit

    def _capacity(self) -> Limit:
        """How many groups the numbers allow, whatever else holds them back."""
        env = self._env
        if env.config.batch_size == -1:
            return Limit(0, ThrottleReason.TRAINER_NOT_READY, "the trainer has not told its batch size")
        workers = worker_limit(env.config, env.max_num_workers, self.evaluating)
        return workers.or_tighter(off_policy_limit(env.config, self._runtime.trainer.queue()))

    def _may_launch(self, limit: Limit) -> bool:
        return not self.stopping and len(self._env.workers) < limit.groups

    def _outbox_limit(self) -> Limit | None:
        depth, limit = self._runtime.outbox_depth, self._env.config.outbox_limit
        if depth < limit:
            return None
        return Limit(0, ThrottleReason.OUTBOX_FULL, f"{depth}/{limit} groups, outbox_limit")

    def _server_limit(self) -> Limit | None:
        trouble = self._env.server.unhealthy_detail
        return Limit(0, ThrottleReason.SERVERS_UNHEALTHY, trouble) if trouble else None

    def _streak_limit(self, now: float) -> Limit | None:
        if not self._streak.probing:
            return None
        told = f"{self._streak.count} failures in a row, {self._streak.last_error}"
        if self._streak.resting(now) > 0:
            return Limit(0, ThrottleReason.BACKING_OFF, told)
        return Limit(1, ThrottleReason.BACKING_OFF, f"one group at a time after {told}")

    def _item_limit(self, now: float) -> Limit | None:
        return self._item_trouble if now < self._items_after and not self._env.backlog else None

    def _pause_limit(self) -> Limit | None:
        if not self._paused:
            return None
        if not self._single_steps:
            return Limit(0, ThrottleReason.PAUSED, "paused")
        return Limit(len(self._env.workers) + 1, ThrottleReason.PAUSED, "paused, but for a single group")

    # -- launching

    async def launch_up_to_limit(self) -> None:
        """Start groups on items of the backlog, then on new ones, while the limit allows."""
        while self._may_launch(self.limit(time.monotonic())):
            from_backlog = bool(self._env.backlog)
            item = self._env.backlog.pop() if from_backlog else await self._next_item()
            if item is None:
                return
            if not self._may_launch(self.limit(time.monotonic())):
                self._env.backlog.append(item)
                return
            self._start(item, from_backlog)

    async def _next_item(self) -> Any:
        try:
            item = await self._env.get_next_item()
        except Exception as error:  # noqa: BLE001  the author's code may raise anything
            self._item_failed("get_next_item", error)
            return None
        self._bad_item.reset()
        if item is None:
            self._items_after = time.monotonic() + self._no_item.next_wait()
            self._item_trouble = Limit(0, ThrottleReason.NO_ITEMS, "get_next_item gave None")
        else:
            self._no_item.reset()
        return item

    def _item_failed(self, where: str, error: Exception) -> None:
        logger.error("%s: %s", where, describe(error), exc_info=error)
        wait = self._bad_item.next_wait()
        self._items_after = time.monotonic() + wait
        told = f"{where} failed, asked again after {wait:.1f} s: {describe(error)}"
        self._item_trouble = Limit(0, ThrottleReason.BACKING_OFF, told)

    def _start(self, item: Any, from_backlog: bool) -> None:
        env = self._env
        flight = Flight(
            self._runtime.stream, self._runtime.numbers.next(), item,
            rollouts=env.config.group_size, step=env.curr_step, from_backlog=from_backlog,
        )  # fmt: skip
        self._single_steps = max(0, self._single_steps - 1)
        key = str(flight.group_id)
        env.running_items[key] = {"item": item, "flight": flight, "start_time": time.monotonic()}
        worker = asyncio.create_task(env.handle_env(key))
        env.running_items[key]["worker"] = worker
        env.workers.add(worker)
        worker.add_done_callback(functools.partial(self._landed, key))

    def _landed(self, key: str, worker: asyncio.Task[Any]) -> None:
        """A worker ended, however it did: its slot is free and its group has an outcome."""
        env = self._env
        env.workers.discard(worker)
        flight: Flight = env.running_items.pop(key)["flight"]
        if worker.cancelled():
            if not flight.claimed and not flight.settled:
                env.backlog.append(flight.item)
                flight.requeue(RequeueReason.SHUTDOWN)
        elif (error := worker.exception()) is not None:
            logger.error("group %d: %s", flight.group_id, describe(error), exc_info=error)
            if not flight.claimed:
                flight.fail(error)
        if flight.error:
            self._streak.failed(flight.error, time.monotonic())
        elif not flight.recalled.done():
            self._streak.succeeded()
            env.last_completed_item = flight.item
        self.wake()

    # -- telling

    def _publish(self, limit: Limit, now: float) -> None:
        self._runtime.report.backlog(len(self._env.backlog))
        self._publish_state()
        if self._launching is not None:
            if now < self._launching_since + SLOW_ITEM_SECONDS:
                return
            limit = limit.or_tighter(Limit(0, ThrottleReason.NO_ITEMS, "get_next_item has not returned yet"))
        self._runtime.report.throttle(limit, self._capacity().groups, in_flight=len(self._env.workers))

    def _publish_state(self) -> None:
        self._runtime.report.state(self._state(), self.waiting_for, self._paused_by)

    def _state(self) -> RunState:
        if self.stopping:
            return RunState.FINISHING
        if not self._started:
            return RunState.STARTING
        if self._paused:
            return RunState.PAUSING if self._env.workers else RunState.PAUSED
        if self.evaluating and self._env.config.eval_handling is EvalHandlingEnum.STOP_TRAIN:
            return RunState.EVALUATING
        return RunState.RUNNING
