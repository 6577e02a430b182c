"""Carries groups out of the outbox to the trajectory API, one after the other, until each is accepted or refused."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto

import httpx

from atropos_tui.inference.http_pool import ConnectionPool, CookielessClient
from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import GroupDelivered, GroupRefused, GroupSkipped, SendFailed
from atropos_tui.ledger.outcomes import SkipReason
from atropos_tui.runtime.answers import Accepted, Answer, Refused, TryAgain, UnknownEnv, read_answer
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.masking import shown_url
from atropos_tui.runtime.outbox import Outbox, OutboxError, OutboxRow

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
SLOWEST_UPLOAD = 1_000_000  # bytes a second: a large group gets that much more time
LONGEST_ANSWER = 65_536
PATIENCE = 5  # failures of the server at one group before another is tried
FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0


def retry_delay(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling, with jitter so that environments don't go in step."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 30)) * random.uniform(0.5, 1.0)


def new_client() -> httpx.AsyncClient:
    """A client for the trajectory API. Proxies from the environment are not for one next door.

    With httpx's own connections a send needs the interpreter's lock so often that an environment which computes all the
    time halves the rate.
    """
    return CookielessClient(transport=ConnectionPool(LONGEST_ANSWER), trust_env=False)


class Standing(Enum):
    """What became of a group that was tried: it left the outbox, it waits, or it waits and may itself be at fault."""

    LEFT = auto()
    WAITS = auto()
    SUSPECT = auto()


class Courier:
    """Runs in a thread and on a loop of its own; `put`, `wake` and the setters are safe from any other.

    `register_again` is awaited when the trajectory API does not know the environment's id; `settled` is called after
    each group that left the outbox.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        url: str,
        stream: EventStream,
        client: httpx.AsyncClient | None,
        concurrency: int,
        timeout: float,
        max_age_steps: int | None,
        register_again: Callable[[], Awaitable[None]],
        delay_after: Callable[[int], float],
        settled: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._url = url
        self._shown_url = shown_url(url)
        self._stream = stream
        self._client = client
        self._concurrency = concurrency
        self._timeout = timeout
        self._max_age_steps = max_age_steps
        self._register_again = register_again
        self._delay_after = delay_after
        self._settled = settled

        self._queue: deque[int] = deque()
        self._env_id: int | None = None
        self._registrations = 0
        self._trainer_step = 0
        self._failures = 0
        self._retry_at = 0.0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._registering = asyncio.Lock()

    def put(self, group_id: int) -> None:
        """A group that is in the outbox is to be delivered, after those before it."""
        self._queue.append(group_id)
        self._look()

    def put_first(self, group_ids: Iterable[int]) -> None:
        """Groups that an earlier process left are to be delivered before all others, in this order."""
        self._queue.extendleft(reversed(list(group_ids)))
        self._look()

    def set_registration(self, env_id: int | None) -> None:
        self._env_id = env_id
        self._registrations += 1
        self.wake()

    def set_trainer_step(self, step: int) -> None:
        self._trainer_step = step

    def wake(self) -> None:
        """Try now what would be tried later."""
        self._retry_at = 0.0
        self._look()

    def close(self) -> None:
        """End after the requests that are under way."""
        self._closing = True
        self._look()

    def cancel(self) -> None:
        """End now. What was under way stays in the outbox."""
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def run(self) -> None:
        """Deliver until `close`."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        async with self._client or new_client() as client, asyncio.TaskGroup() as lanes:
            for _ in range(self._concurrency):
                lanes.create_task(self._lane(client))

    def _look(self) -> None:
        """Let the lanes look at what changed. A loop that has ended, or not begun, has nothing to be told."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken.set)

    async def _lane(self, client: httpx.AsyncClient) -> None:
        while await self._something_is_due():
            standing = await self._try_first(client)
            if standing is Standing.SUSPECT and len(self._queue) > 1:
                await self._let_one_by(client)

    async def _try_first(self, client: httpx.AsyncClient) -> Standing:
        """Try the first group; unless it leaves the outbox, it stays the first."""
        group_id = self._queue.popleft()
        standing = Standing.WAITS
        try:
            standing = await self._settle(client, group_id)
        finally:
            if standing is not Standing.LEFT:
                self._queue.appendleft(group_id)
        if standing is Standing.LEFT:
            self._settled()
        return standing

    async def _let_one_by(self, client: httpx.AsyncClient) -> None:
        """See whether the next group is taken: then it is the first that breaks the server, and others go before it."""
        suspect = self._queue.popleft()
        passed = False
        try:
            passed = await self._try_first(client) is Standing.LEFT
        finally:
            if passed:
                logger.warning("group %d breaks the trajectory API at %s; others go first", suspect, self._shown_url)
                self._queue.append(suspect)
            else:
                self._queue.appendleft(suspect)

    async def _something_is_due(self) -> bool:
        """Wait until a group may be sent; False once the courier is closed."""
        while not self._closing:
            rest = self._retry_at - time.monotonic()
            may_send = bool(self._queue) and self._env_id is not None
            if may_send and rest <= 0:
                return True
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest if may_send else None):
                    await self._woken.wait()
        return False

    async def _settle(self, client: httpx.AsyncClient, group_id: int) -> Standing:
        """Try once to bring a group to its outcome."""
        row = self._outbox.get(group_id)
        if row is None:
            return Standing.LEFT
        if self._is_stale(row):
            self._skip_stale(row)
            return Standing.LEFT
        registration = self._registrations
        began = time.monotonic()
        answer = await self._post(client, row)
        match answer:
            case Accepted():
                self._deliver(row, answer, time.monotonic() - began)
            case Refused():
                self._refuse(row, answer)
            case UnknownEnv():
                await self._forgotten(row, answer, registration)
                return Standing.WAITS
            case TryAgain():
                self._fail(row, answer)
                return Standing.SUSPECT if answer.broke and row.attempts + 1 >= PATIENCE else Standing.WAITS
        return Standing.LEFT

    async def _post(self, client: httpx.AsyncClient, row: OutboxRow) -> Answer:
        body = row.body.with_env_id(self._env_id)
        headers = {"Content-Type": "application/json", "Idempotency-Key": row.key}
        if row.body.gzipped:
            headers["Content-Encoding"] = "gzip"
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        try:
            async with (
                asyncio.timeout(self._timeout + len(body) / SLOWEST_UPLOAD),
                client.stream("POST", self._url, content=body, headers=headers, timeout=timeout) as response,
            ):
                return read_answer(response.status_code, response.headers, await _bounded(response))
        except TimeoutError:
            return TryAgain(f"no answer within {self._timeout:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return TryAgain(f"no connection to {self._shown_url}: {error or 'timed out'}")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            return TryAgain(describe(error))

    def _is_stale(self, row: OutboxRow) -> bool:
        limit = self._max_age_steps
        return limit is not None and limit > 0 and self._trainer_step - row.step > limit

    def _skip_stale(self, row: OutboxRow) -> None:
        age = f"started at step {row.step}, the trainer is at {self._trainer_step}"
        detail = f"{age}; {self._max_age_steps} steps are allowed"
        self._stream.publish(GroupSkipped, group_id=row.group_id, reason=SkipReason.STALE, detail=detail)
        self._mark(self._outbox.mark_stale, row.group_id)

    def _deliver(self, row: OutboxRow, answer: Accepted, latency: float) -> None:
        self._failures = 0
        self._stream.publish(
            GroupDelivered, group_id=row.group_id, reason=answer.how, latency=latency, attempts=row.attempts + 1
        )
        self._mark(self._outbox.mark_delivered, row.group_id)

    def _refuse(self, row: OutboxRow, answer: Refused) -> None:
        self._failures = 0
        logger.warning("group %d refused by the trajectory API: HTTP %d: %s", row.group_id, answer.status, answer.body)
        self._stream.publish(GroupRefused, group_id=row.group_id, status=answer.status, body=answer.body)
        self._mark(self._outbox.mark_refused, row.group_id, answer.status, answer.body)

    def _fail(self, row: OutboxRow, answer: TryAgain) -> None:
        """The group stays where it is; nothing is sent for a while."""
        self._failures += 1
        self._note_failure(row, answer, max(self._delay_after(self._failures), answer.retry_after))

    async def _forgotten(self, row: OutboxRow, answer: UnknownEnv, registration: int) -> None:
        """Register again and try at once; from the second time in a row on, after a while."""
        error = f"HTTP 404: the trajectory API at {self._shown_url} does not know env_id {self._env_id}"
        async with self._registering:
            if self._registrations == registration:
                try:
                    await self._register_again()
                except Exception as failure:  # noqa: BLE001  registration belongs to the owner and may fail in any way
                    error = f"{error}; registering again failed: {describe(failure)}"
        self._failures += 1
        known = self._registrations != registration
        delay = 0.0 if known and self._failures == 1 else self._delay_after(self._failures)
        self._note_failure(row, TryAgain(error, answer.body), delay)

    def _note_failure(self, row: OutboxRow, answer: TryAgain, delay: float) -> None:
        self._retry_at = time.monotonic() + delay
        self._mark(self._outbox.mark_attempt, row.group_id)
        self._stream.publish(
            SendFailed, error=answer.error, body=answer.body, attempts=row.attempts + 1, retry_in=delay
        )

    def _mark(self, mark: Callable[..., None], group_id: int, *details: object) -> None:
        """Note in the outbox what became of a group. A disk that does not take it changes nothing about that.

        Marked last, so that the ledger knows all outcomes once the outbox is empty.
        """
        try:
            mark(group_id, *details)
        except OutboxError as error:
            logger.error("%s; it does not know the newest of group %d", error, group_id)


async def _bounded(response: httpx.Response) -> bytes:
    """The answer's body, or as much of it as anybody would read."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > LONGEST_ANSWER:
            break
    return bytes(content[:LONGEST_ANSWER])
