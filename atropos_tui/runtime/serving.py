"""The `serve` mode: from `setup()` to the orderly end of a run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import httpx

from atropos_tui.ledger.events import RunEnded
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.runtime.courier import new_client
from atropos_tui.runtime.failures import RolloutTimeout, describe, traceback_text
from atropos_tui.runtime.outbox import Outbox
from atropos_tui.runtime.sender import Sender
from atropos_tui.runtime.stopping import Stopped, cancel, unless_stopped
from atropos_tui.runtime.trajectory_client import TrajectoryApiError, TrajectoryClient

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
FLUSH_SECONDS = 10.0
HURRIED_FLUSH_SECONDS = 1.0
EVAL_SECONDS = 10.0
WANDB_SECONDS = 10.0


async def serve(runtime: Runtime) -> None:
    """Run until the trainer has its steps or the operator stops it. Raises what broke the run, after telling of it."""
    try:
        async with _client(runtime) as http:
            await _Service(runtime, http).run()
    except asyncio.CancelledError:
        _tell_end(runtime, RunState.FINISHED, "cancelled")
        raise
    except BaseException as error:
        _tell_end(runtime, RunState.CRASHED, describe(error), traceback_text(error))
        raise
    _tell_end(runtime, RunState.FINISHED, runtime.scheduler.stopping)


def _client(runtime: Runtime) -> httpx.AsyncClient:
    return new_client() if runtime.transport is None else httpx.AsyncClient(transport=runtime.transport)


def _tell_end(runtime: Runtime, state: RunState, why: str, traceback: str = "") -> None:
    runtime.report.state(state)
    runtime.stream.publish(RunEnded, state=state, why=why, traceback=traceback)


class _Service:
    """The parts that run beside each other while an environment serves."""

    def __init__(self, runtime: Runtime, http: httpx.AsyncClient) -> None:
        self._runtime = runtime
        self._env = env = runtime.env
        self._outbox = Outbox(runtime.outbox_path)
        self._sender = Sender(
            outbox=self._outbox,
            api_url=env.config.rollout_server_url,
            stream=runtime.stream,
            key_prefix=uuid.uuid4().hex,
            client=_client(runtime),
            max_age_steps=env.config.max_batches_offpolicy,
            on_unknown_env=runtime.trainer.register_again,
        )
        highest = max(self._outbox.highest_group_id(), runtime.highest_group_before)
        self._outbox.note_highest(highest)
        runtime.numbers.start_at(highest + 1)
        runtime.delivery.destination = runtime.sender = self._sender
        runtime.trainer.client = self._api = TrajectoryClient(http, env.config.rollout_server_url)
        self._background: list[asyncio.Task[Any]] = []

    async def run(self) -> None:
        try:
            with contextlib.suppress(Stopped):
                await unless_stopped(self._runtime.scheduler.stop_said, self._start())
                if self._outbox.depth():
                    # What an earlier process left is judged by the trainer's step.
                    with contextlib.suppress(TrajectoryApiError):
                        await unless_stopped(self._runtime.scheduler.stop_said, self._env.get_status())
                self._runtime.trainer.stop_if_late()
                self._background = [
                    asyncio.create_task(self._sender.run(), name="sender"),
                    asyncio.create_task(self._runtime.trainer.follow(), name="trainer"),
                ]
                await self._while_background_lives(self._runtime.scheduler.run())
            await self._end()
        finally:
            await self._clear_up()

    async def _start(self) -> None:
        env = self._env
        self._runtime.scheduler.note_waiting(f"setup() of {type(env).__name__}")
        await self._runtime.calls.run(env.setup)
        self._runtime.scheduler.note_waiting("")
        await env.setup_wandb()
        await env.register_env()
        await env.get_server_info()
        self._runtime.trainer.tell_configured()

    async def _while_background_lives(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, *self._background}, return_when=asyncio.FIRST_COMPLETED)
            for part in (task, *self._background):
                if part.done():
                    part.result()
        finally:
            await cancel({task})

    async def _end(self) -> None:
        """Drain what is in flight, flush the outbox, save where we are, and say goodbye."""
        env = self._env
        await self._runtime.scheduler.drain(DRAIN_SECONDS)
        await self._runtime.delivery.finish(DRAIN_SECONDS)
        await self._runtime.evaluations.end(EVAL_SECONDS)
        flush_seconds = HURRIED_FLUSH_SECONDS if self._runtime.scheduler.hurried else FLUSH_SECONDS
        if self._background and not await self._sender.drain(flush_seconds):
            logger.warning("%d groups stay in the outbox", self._sender.depth)
        self._runtime.step_checks.save_at_end()
        with contextlib.suppress(RolloutTimeout):
            await self._runtime.calls.run(self._runtime.step_checks.log, limit=WANDB_SECONDS)
        if env.env_id is not None:
            try:
                await self._api.disconnect(env.env_id)
            except TrajectoryApiError as error:
                logger.warning("the trajectory API was not told that this environment ended: %s", error)

    async def _clear_up(self) -> None:
        """However the run ended: nothing runs on, every file is closed."""
        await cancel(self._env.workers)
        await self._runtime.delivery.finish(DRAIN_SECONDS)
        await self._sender.close()
        await cancel(self._background)
        await self._runtime.evaluations.end(0.0)
        await self._runtime.close(WANDB_SECONDS)
        self._outbox.close()
