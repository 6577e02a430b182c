"""The way of finished groups to the trajectory API: into the outbox, then out of it, oldest first.

Groups are written by `submit` on the runtime's loop and delivered by a thread with a loop of its own, so that a scoring
function that blocks the runtime's loop does not hold up the groups that are finished.

Requests go out one at a time by default. That keeps an environment's groups in order, and costs one round trip a group
on a connection that stays open. A `concurrency` above 1 is for trajectory APIs that are far away; groups then overtake
each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from atropos_tui.ledger import Clock, EventStream
from atropos_tui.ledger.events import GroupEnqueued, GroupSkipped, GroupStarted, OutboxUnwritable
from atropos_tui.ledger.outcomes import SkipReason
from atropos_tui.runtime.checks import CheckedGroup
from atropos_tui.runtime.courier import Courier, retry_delay
from atropos_tui.runtime.encoding import EncodedGroup, encode_group
from atropos_tui.runtime.outbox import Outbox, OutboxError

logger = logging.getLogger(__name__)

CANCEL_GRACE = 2.0


class Sender:
    """Delivers one environment's groups.

    `client` is for this sender alone: its connections belong to the sender's own loop. `on_unknown_env` runs on the
    loop of `run`, registers the environment again and calls `set_registration`. A group that was started more than
    `max_age_steps` trainer steps ago is skipped as stale instead of being sent (None or ≤ 0: no limit).
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        api_url: str,
        stream: EventStream,
        key_prefix: str,
        client: httpx.AsyncClient | None = None,
        concurrency: int = 1,
        timeout: float = 60.0,
        max_age_steps: int | None = None,
        on_unknown_env: Callable[[], Awaitable[object]] | None = None,
        clock: Clock | None = None,
        delay_after: Callable[[int], float] = retry_delay,
    ) -> None:
        self._outbox = outbox
        self._stream = stream
        self._key_prefix = key_prefix
        self._on_unknown_env = on_unknown_env
        self._clock = clock or Clock()
        self._delay_after = delay_after
        self._writers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="outbox")
        # Held from the writing of a group until the courier has it, so that no other gets in between.
        self._entering = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._trainer_step: int | None = None
        self._ended: asyncio.Future[None] | None = None
        self._drained: set[asyncio.Event] = set()
        self._courier = Courier(
            outbox=outbox,
            url=f"{api_url.rstrip('/')}/scored_data",
            stream=stream,
            client=client,
            concurrency=max(1, concurrency),
            timeout=timeout,
            max_age_steps=max_age_steps,
            register_again=self._register_again,
            delay_after=delay_after,
            settled=self._settled,
        )

    @property
    def depth(self) -> int:
        """How many groups wait in the outbox."""
        return self._outbox.depth()

    def set_registration(self, env_id: int | None) -> None:
        """The id that the trajectory API gave; None stops sending until there is one."""
        self._courier.set_registration(env_id)

    def set_trainer_step(self, step: int) -> None:
        """The step that the trainer is at, by which the age of groups is judged."""
        self._trainer_step = step
        self._courier.set_trainer_step(step)

    def wake(self) -> None:
        """Try now what would be tried later."""
        self._courier.wake()

    async def submit(self, checked: CheckedGroup, group_id: int, step: int) -> None:
        """Encode a group, write it to the outbox and publish GroupEnqueued; then it is safe and will be delivered.

        Returns if, and only if, the group is in the outbox. While the disk does not take it, publishes OutboxUnwritable
        and tries again; its worker starts nothing new meanwhile. A cancellation that comes during the write takes
        effect after it.
        """
        loop = asyncio.get_running_loop()
        encoded = await loop.run_in_executor(self._writers, encode_group, checked.body)
        attempts = 0
        while True:
            write = loop.run_in_executor(self._writers, self._write, checked, encoded, group_id, step)
            try:
                return await _to_its_end(write)
            except OutboxError as error:
                attempts += 1
                delay = self._delay_after(attempts)
                logger.error("group %d waits: %s", group_id, error)
                self._stream.publish(
                    OutboxUnwritable, group_id=group_id, path=str(error.path or ""), error=error.wrong,
                    remedy=error.remedy, retry_in=delay,
                )  # fmt: skip
                await asyncio.sleep(delay)

    async def run(self) -> None:
        """Deliver until `close`, first what an earlier process left. Raises what broke the delivery."""
        self._loop = asyncio.get_running_loop()
        await self._loop.run_in_executor(self._writers, self._take_over)
        self._ended = self._loop.create_future()
        threading.Thread(target=self._deliver, name="sender", daemon=True).start()
        try:
            await asyncio.shield(self._ended)
        except asyncio.CancelledError:
            await self.close(grace=0.0)
            raise

    async def drain(self, timeout: float) -> bool:  # noqa: ASYNC109  a bound on waiting, not an error
        """Wait until nothing is left in the outbox; False if that takes longer than `timeout` seconds."""
        self.wake()
        drained = asyncio.Event()
        self._drained.add(drained)
        try:
            async with asyncio.timeout(timeout):
                while self.depth:
                    await drained.wait()
                    drained.clear()
        except TimeoutError:
            return not self.depth
        finally:
            self._drained.discard(drained)
        return True

    async def close(self, grace: float = 5.0) -> None:
        """End `run`; a request under way may take `grace` seconds more. The outbox stays open, for its owner."""
        self._courier.close()
        if self._ended is not None:
            await asyncio.wait({self._ended}, timeout=grace)
            self._courier.cancel()
            await asyncio.wait({self._ended}, timeout=CANCEL_GRACE)
        self._writers.shutdown(wait=False)

    def _take_over(self) -> None:
        """In a thread. What an earlier process left enters this process's ledger, and is sent before anything else.

        Except for what was made at a step that the trainer has not reached: it belongs to another training.
        """
        inherited = self._outbox.inherited()
        if inherited:
            logger.warning("%d groups that an earlier process left are sent first", len(inherited))
        to_send = []
        for left in inherited:
            self._stream.publish(
                GroupStarted, group_id=left.group_id, item=left.item, rollouts=left.rollouts, step=left.step
            )
            self._stream.publish(
                GroupEnqueued, group_id=left.group_id, raw_bytes=left.raw_bytes, wire_bytes=left.wire_bytes
            )
            if self._trainer_step is not None and left.step > self._trainer_step:
                detail = f"made at step {left.step} of an earlier process, and the trainer is at {self._trainer_step}"
                self._stream.publish(GroupSkipped, group_id=left.group_id, reason=SkipReason.STALE, detail=detail)
                try:
                    self._outbox.mark_stale(left.group_id)
                except OutboxError as error:
                    logger.error("%s; the next process will meet group %d again", error, left.group_id)
            else:
                to_send.append(left.group_id)
        self._courier.put_first(to_send)

    def _write(self, checked: CheckedGroup, body: EncodedGroup, group_id: int, step: int) -> None:
        """In a thread. The group is announced before the courier can see it, or it might be delivered first."""
        with self._entering:
            self._outbox.add(
                group_id,
                key=f"{self._key_prefix}:{group_id}",
                item=checked.content.item,
                rollouts=len(checked.scores),
                step=step,
                wall=self._clock.wall(),
                body=body,
            )
            self._stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=body.raw_bytes, wire_bytes=body.wire_bytes)
            self._courier.put(group_id)

    def _deliver(self) -> None:
        """The sender's thread."""
        error: BaseException | None = None
        try:
            asyncio.run(self._courier.run())
        except asyncio.CancelledError:
            pass
        except BaseExceptionGroup as group:
            error = group.exceptions[0]
        except BaseException as broken:  # noqa: BLE001  goes on to whoever awaits `run`
            error = broken
        self._tell(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        assert self._ended is not None
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    async def _register_again(self) -> None:
        """On the sender's loop: let the owner register, on his own."""
        if self._on_unknown_env is not None and self._loop is not None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_call(self._on_unknown_env), self._loop))

    def _settled(self) -> None:
        """On the sender's loop: a group left the outbox."""
        if not self.depth:
            self._tell(self._tell_drained)

    def _tell_drained(self) -> None:
        for drained in self._drained:
            drained.set()

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        """Call on the runtime's loop; one that is closed has nobody to tell."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback, *arguments)


async def _call(callback: Callable[[], Awaitable[object]]) -> None:
    await callback()


async def _to_its_end(write: asyncio.Future[None]) -> None:
    """Await what cannot be undone: cancellations that come meanwhile are delivered to the task afterwards."""
    task = asyncio.current_task()
    cancellations = 0
    while not write.done():
        try:
            await asyncio.wait({write})
        except asyncio.CancelledError:
            cancellations += 1
    if task is not None:
        for _ in range(cancellations):
            task.uncancel()
            task.cancel()
    write.result()
