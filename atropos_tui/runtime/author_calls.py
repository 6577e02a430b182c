"""Calls into the author's code: each in a task of its own, so that it can be bounded, cancelled and contained."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from atropos_tui.errors import ContractError
from atropos_tui.inference.run_servers import RunServers, current_servers
from atropos_tui.ledger.outcomes import FailReason, RequeueReason
from atropos_tui.runtime.failures import RolloutTimeout

logger = logging.getLogger(__name__)

T = TypeVar("T")

CANCEL_GRACE = 5.0


class Recalled(Exception):  # noqa: N818  a decision, not an error
    """The runtime cancelled the call on purpose."""

    def __init__(self, reason: RequeueReason | FailReason) -> None:
        self.reason = reason
        super().__init__(reason)


class AuthorCalls:
    """Awaits the author's coroutines. Keeps hold of those that don't end when they are cancelled.

    Servers that they call, and nobody watches yet, join `servers`.
    """

    def __init__(self, servers: RunServers | None = None) -> None:
        self._servers = servers
        self._abandoned: set[asyncio.Task[Any]] = set()

    async def run(
        self,
        function: Callable[..., Awaitable[T]],
        *arguments: Any,
        limit: float | None = None,
        recalled: asyncio.Future[RequeueReason | FailReason] | None = None,
    ) -> T:
        """The result of the author's coroutine function, within `limit` seconds and unless `recalled` is set first.

        Raises what the author's code raises, RolloutTimeout, Recalled, and ContractError when it leaks a
        CancelledError or ends the interpreter. A call that ignores its cancellation is left behind after a grace.
        """
        task = asyncio.create_task(self._contained(function, arguments))
        watched: set[asyncio.Future[Any]] = {task} if recalled is None else {task, recalled}
        try:
            await asyncio.wait(watched, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise ContractError(
                "the environment's code leaked a CancelledError that nobody asked for", "catch it where it times out"
            )
        if task.done():
            return task.result()
        await self._end(task)
        if recalled is not None and recalled.done():
            raise Recalled(recalled.result())
        raise RolloutTimeout(f"took longer than {limit or 0.0:g} s")

    async def _contained(self, function: Callable[..., Awaitable[T]], arguments: tuple[Any, ...]) -> T:
        current_servers.set(self._servers)
        try:
            return await function(*arguments)
        except SystemExit as error:
            told = f"the environment's code called sys.exit({error.code!r})"
            raise ContractError(told, "raise an exception") from error

    async def _end(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_GRACE)
        if not task.done():
            logger.error("the environment's code ignores its cancellation and runs on: %r", task)
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)
        task.add_done_callback(_read_exception)


def _read_exception(task: asyncio.Task[Any]) -> None:
    """So that asyncio doesn't report as forgotten what was thrown away on purpose."""
    if not task.cancelled():
        task.exception()
