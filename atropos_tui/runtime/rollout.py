"""One attempt at one item: the environment's code, bounded and contained, to exactly one outcome."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import ContractError
from atropos_tui.ledger import current_group
from atropos_tui.ledger.outcomes import FailReason, RejectReason, RequeueReason, SkipReason, Stage
from atropos_tui.runtime.author_calls import Recalled
from atropos_tui.runtime.failures import RolloutTimeout, describe, fail_reason
from atropos_tui.runtime.flight import Flight, current_flight

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)


class RolloutRunner:
    """Runs `collect_trajectories`, `postprocess_histories` and `handle_send_to_api` of an environment for one item."""

    def __init__(self, runtime: Runtime) -> None:
        self._env = runtime.env
        self._calls = runtime.calls
        self._retried: dict[int, tuple[Any, int]] = {}
        self._last_told = ""

    async def run(self, flight: Flight, **send_options: Any) -> Any:
        """Bring the group to its outcome. Returns what was sent, or None; raises only its own cancellation.

        `send_options` go to `handle_send_to_api`.
        """
        current_flight.set(flight)
        current_group.set(flight.group_id)
        started = time.monotonic()
        groups = None
        try:
            groups = await self._finished_groups(flight, started)
            if groups is not None:
                flight.enter(Stage.CHECKING)
                send = functools.partial(self._env.handle_send_to_api, groups, flight.item, **send_options)
                await self._bounded(flight, time.monotonic(), send)
                if not flight.claimed:
                    flight.reject(rejecting_part(self._env))
                self._retried.pop(id(flight.item), None)
        except Recalled as recall:
            self._end_recalled(flight, recall.reason)
        except asyncio.CancelledError:
            self._put_back(flight, RequeueReason.SHUTDOWN)
            raise
        except Exception as error:  # noqa: BLE001  the author's code may raise anything
            self._fail(flight, error)
        finally:
            self._note_duration(time.monotonic() - started, succeeded=groups is not None)
            await self._clean_up(flight)
        return groups

    async def _finished_groups(self, flight: Flight, started: float) -> Any:
        """What the environment made of the item; None when the outcome is settled already."""
        env = self._env
        collected = await self._bounded(flight, started, env.collect_trajectories, flight.item)
        groups, further_items = unpack_collected(collected)
        env.backlog.extend(further_items)
        if groups is None:
            flight.reject(RejectReason.COLLECT_TRAJECTORIES)
            return None
        if is_empty(groups):
            flight.skip(SkipReason.EMPTY)
            return None
        flight.enter(Stage.POSTPROCESSING)
        groups = await self._bounded(flight, started, env.postprocess_histories, groups)
        if groups is None:
            flight.reject(RejectReason.POSTPROCESS_HISTORIES)
            return None
        if is_empty(groups):
            flight.skip(SkipReason.EMPTY)
            return None
        return groups

    async def _bounded(self, flight: Flight, started: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call of the author's code in what is left of `worker_timeout`."""
        limit = self._env.config.worker_timeout
        left = max(0.0, started + limit - time.monotonic()) if limit > 0 else None
        try:
            return await self._calls.run(function, *arguments, limit=left, recalled=flight.recalled)
        except RolloutTimeout:
            raise RolloutTimeout(f"took longer than worker_timeout, {limit:g} s") from None

    def _end_recalled(self, flight: Flight, reason: RequeueReason | FailReason) -> None:
        if isinstance(reason, RequeueReason):
            self._put_back(flight, reason)
        elif not flight.claimed:
            self._retried.pop(id(flight.item), None)
            flight.give_up()

    def _put_back(self, flight: Flight, reason: RequeueReason) -> None:
        if not flight.claimed:
            self._env.backlog.append(flight.item)
            flight.requeue(reason)

    def _fail(self, flight: Flight, error: Exception) -> None:
        reason = fail_reason(error)
        told = describe(error)
        # The event has the traceback each time; the log would drown in copies of one.
        news = error if told != self._last_told else None
        self._last_told = told
        logger.error("group %d: %s: %s", flight.group_id, reason.replace("_", " "), told, exc_info=news)
        if flight.claimed:
            return
        if reason is not FailReason.ENV_ERROR and self._may_retry(flight.item):
            self._env.backlog.append(flight.item)
        flight.fail(error)

    def _may_retry(self, item: Any) -> bool:
        """Count one more attempt at the item; it is kept beside its id so that the id stays its own."""
        _, failures = self._retried.pop(id(item), (item, 0))
        if failures >= self._env.config.item_retries:
            return False
        self._retried[id(item)] = (item, failures + 1)
        return True

    def _note_duration(self, seconds: float, succeeded: bool) -> None:
        env = self._env
        env.task_duration.append(seconds)
        env.task_successful.append(int(succeeded))
        (env.succeeded_task_duration if succeeded else env.failed_task_duration).append(seconds)

    async def _clean_up(self, flight: Flight) -> None:
        """`cleanup()` comes after every attempt, whatever happened in it."""
        limit = self._env.config.worker_timeout
        try:
            await self._calls.run(self._env.cleanup, limit=limit if limit > 0 else None)
        except Exception as error:
            logger.error("cleanup() after group %d: %s", flight.group_id, describe(error), exc_info=error)


def unpack_collected(collected: Any) -> tuple[Any, list[Any]]:
    """The groups and the further items that `collect_trajectories` returned. Raises ContractError for anything else."""
    if not isinstance(collected, (tuple, list)) or len(collected) != 2:
        raise ContractError(
            f"collect_trajectories returned {type(collected).__name__} instead of (group or list of groups, items)",
            "return a pair such as `group, []`",
        )
    groups, further_items = collected
    return groups, list(further_items or [])


def is_empty(groups: Any) -> bool:
    return hasattr(groups, "__len__") and len(groups) == 0


def rejecting_part(env: BaseEnv) -> RejectReason:
    """Who dropped a group that is None or missing among those to be sent."""
    if type(env).postprocess_histories.__qualname__ == "BaseEnv.postprocess_histories":
        return RejectReason.COLLECT_TRAJECTORIES
    return RejectReason.POSTPROCESS_HISTORIES
