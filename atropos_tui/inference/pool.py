"""The servers that share the load, and the one way of every request: permit, attempt, retry, merge."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from atropos_tui.errors import InferenceError, UsageError
from atropos_tui.inference.call_log import CallLog
from atropos_tui.inference.failures import RequestError, malformed, timed_out
from atropos_tui.inference.health import HealthWatch, ProbedServer
from atropos_tui.inference.permits import PermitQueue, Split
from atropos_tui.inference.results import Operation
from atropos_tui.inference.run_servers import current_servers
from atropos_tui.ledger import EventStream

if TYPE_CHECKING:
    from atropos_tui.inference.server import APIServer

R = TypeVar("R")

MAX_ATTEMPTS = 4
# A server that is paused for a weight update, or limits its callers, gets more patience than one that breaks.
MAX_ATTEMPTS_WHEN_BUSY = 12
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0

logger = logging.getLogger(__name__)


class ServerPool:
    """Servers among which a request may choose. A server belongs to one pool; a server used alone is its own."""

    def __init__(self, servers: Sequence[APIServer]) -> None:
        self.servers = tuple(servers)
        self.queue = PermitQueue()
        self.log = CallLog()
        self._watch = HealthWatch(self.servers, self._probed, self._expire)
        for index, server in enumerate(self.servers):
            server.index = index
            server.pool = self

    def attach(self, stream: EventStream, first: int | None = None) -> None:
        """Publish health and requests to this stream from now on. The servers have the numbers from `first` on, or new
        ones; told of the same stream again, they keep theirs."""
        if stream is not self.log.stream:
            first = stream.number_servers(len(self.servers)) if first is None else first
            for number, server in enumerate(self.servers, first):
                server.index = number
            self.log.stream = stream
        for server in self.servers:
            self.log.health(server)

    async def complete(
        self, operation: Operation[R], arguments: dict[str, Any], among: Sequence[APIServer] | None = None
    ) -> R:
        """Get exactly `n` choices, numbered from 0, whatever the servers make of `n`. Raises InferenceError.

        `arguments` are those of the operation; of them `split`, `timeout` (seconds) and `n` are read here.
        """
        arguments = dict(arguments)
        servers = self.servers if among is None else tuple(among)
        if not servers:
            raise no_server()
        if self.log.stream is None and (run := current_servers.get()) is not None:
            run.join(self)
        split: Split = "train" if arguments.pop("split", "train") == "train" else "eval"
        seconds = arguments.pop("timeout", None)
        n = int(arguments.get("n") or 1)

        async def ask(count: int) -> R:
            return await self._ask(operation, _with_n(arguments, count), count, servers, split, seconds)

        answers: list[R] = []
        if n == 1 or not all(server.config.n_kwarg_is_ignored for server in servers):
            try:
                answers = [await ask(n)]
            except RequestError as failure:
                if n == 1 or not failure.refuses_n:
                    raise
                logger.info("n=%d is asked for singly: %s", n, failure)
        missing = n - sum(map(operation.choices, answers))
        answers += await run_all([ask(1) for _ in range(missing)])
        return operation.merge(answers, n)

    def mark_up(self, server: APIServer) -> None:
        """The server answered."""
        if server.healthy is not True:
            server.set_health(True, "")
            self.log.health(server)
            self.queue.wake()

    def mark_down(self, server: APIServer, detail: str) -> None:
        """The server does not answer; probe it until it does. Does nothing for a server without health check."""
        if not server.config.health_check:
            return
        if server.healthy is not False or server.health_detail != detail:
            server.set_health(False, detail)
            self.log.health(server)
        self._watch.start()

    def doubt(self, server: APIServer) -> None:
        """The server failed, but may be there: let a probe tell."""
        if server.config.health_check:
            server.in_doubt = True
            self._watch.start()

    @property
    def down_detail(self) -> str:
        """What is wrong, in words, when no server is usable; else empty."""
        usable = not self.servers or any(server.usable for server in self.servers)
        return "" if usable else _down(self.servers)

    async def close(self) -> None:
        """End probes and close connections."""
        await self._watch.close()
        for server in self.servers:
            await server.transport.close()

    async def _ask(
        self,
        operation: Operation[R],
        arguments: dict[str, Any],
        n: int,
        servers: tuple[APIServer, ...],
        split: Split,
        seconds: float | None,
    ) -> R:
        """One request, tried again while that makes sense and its time is not used up by attempts and pauses."""
        attempts, spent = 0, 0.0
        budget: float = max(server.config.timeout for server in servers) if seconds is None else seconds
        while True:
            server = cast("APIServer", await self.queue.acquire(servers, split, budget))
            attempts += 1
            started = time.monotonic()
            try:
                answer = await self._attempt(server, operation, arguments, n, split, budget - spent)
            except RequestError as failure:
                spent += time.monotonic() - started
                if failure.unreachable and server.config.health_check:
                    # The queue waits for a server that is there; not being there uses up no attempt.
                    attempts -= 1
                pause = _pause_before_retry(failure, attempts)
                if pause is None or spent + pause >= budget:
                    raise
                logger.info("trying again in %.1f s: %s", pause, failure)
            else:
                server.count(split, spent + time.monotonic() - started, attempts)
                return answer
            await asyncio.sleep(pause)
            spent += pause

    async def _attempt(
        self,
        server: APIServer,
        operation: Operation[R],
        arguments: dict[str, Any],
        n: int,
        split: Split,
        seconds: float,
    ) -> R:
        """Send one request and release its permit, however it ends."""
        call = self.log.start(server, split, n)
        try:
            async with asyncio.timeout(seconds) as limit:
                answer: R = await getattr(server, operation.method)(**server.prepared(operation, arguments))
            self._check_count(server, operation, answer, n)
        except BaseException as error:
            failure = timed_out(server.url, seconds) if isinstance(error, TimeoutError) and limit.expired() else error
            cancelled = isinstance(failure, asyncio.CancelledError)
            kind = failure.kind if isinstance(failure, InferenceError) else "cancelled" if cancelled else "error"
            self.log.finish(call, error=str(failure) or type(failure).__name__, error_kind=kind)
            if isinstance(failure, RequestError) and failure.unreachable:
                self.mark_down(server, failure.fault)
            elif isinstance(failure, RequestError) and failure.doubtful:
                self.doubt(server)
            if failure is error:
                raise
            raise failure from error
        finally:
            self.queue.release(server, split)
        self.log.finish(call, operation.tell(answer))
        self.mark_up(server)
        return answer

    def _check_count(self, server: APIServer, operation: Operation[R], answer: R, n: int) -> None:
        count = operation.choices(answer)
        if count == 0:
            raise malformed(server.url, "without any choice")
        if n > 1 and count == 1 and not server.config.n_kwarg_is_ignored:
            logger.warning("%s ignores n: gave 1 choice for n=%d; the others are asked for singly", server.url, n)
            server.config.n_kwarg_is_ignored = True

    def _probed(self, probed: ProbedServer, detail: str) -> None:
        server = cast("APIServer", probed)
        server.in_doubt = False
        if detail:
            self.mark_down(server, detail)
        else:
            self.mark_up(server)

    def _expire(self, now: float) -> None:
        def error(servers: tuple[Any, ...], waited: float) -> InferenceError:
            fault = f"{_down(servers)} (waited {waited:g} s)"
            return InferenceError(fault, "start one or correct its base_url", kind="unhealthy")

        self.queue.expire(now, error)


def no_server() -> UsageError:
    return UsageError("no inference server is configured", "give --openai.base_url or return one from config_init")


async def run_all(coroutines: Sequence[Coroutine[Any, Any, R]]) -> list[R]:
    """The results of all, in order; when one fails the others are cancelled and its own error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _down(servers: Sequence[APIServer]) -> str:
    return "no inference server answers: " + "; ".join(server.health_detail for server in servers)


def _with_n(arguments: dict[str, Any], n: int) -> dict[str, Any]:
    """The arguments for a request of n choices; servers that know no `n` are not told of n=1."""
    if n == int(arguments.get("n") or 1):
        return arguments
    others = {name: value for name, value in arguments.items() if name != "n"}
    return others if n == 1 else {**others, "n": n}


def _pause_before_retry(failure: RequestError, attempts: int) -> float | None:
    """Seconds until the next attempt, random so that callers spread; None when there shall be none."""
    if not failure.retry or attempts >= (MAX_ATTEMPTS_WHEN_BUSY if failure.busy else MAX_ATTEMPTS):
        return None
    longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** max(0, attempts - 1))
    return max(failure.retry_after, longest * random.uniform(0.5, 1.0))
