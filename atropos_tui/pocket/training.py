"""The trainer's loop: take a batch from the trajectory API, update the policy, push its weights, tell how it went."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from atropos_tui.pocket.checkpoint import Checkpoint
from atropos_tui.pocket.learner import Learner
from atropos_tui.pocket.remote import InferenceServer, NotRegistered, TrajectoryApi, Unreachable
from atropos_tui.pocket.status_file import StatusFile, TrainerStatus

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
RETRY_SECONDS = 0.5

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818  an end, no error
    """The trainer was told to stop while it waited."""


class Trainer:
    """An ordinary client of the trajectory API. It waits for servers that aren't there, for as long as it takes."""

    def __init__(
        self,
        learner: Learner,
        api: TrajectoryApi,
        inference: InferenceServer,
        status_file: StatusFile,
        *,
        batch_size: int,
        num_steps: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Goes on from the checkpoint if there is one. Raises UsageError when it is of another policy."""
        self.status = TrainerStatus(step=0 if checkpoint is None else checkpoint.restore(learner))
        self._checkpoint = checkpoint
        self._learner = learner
        self._api = api
        self._inference = inference
        self._status_file = status_file
        self._batch_size = batch_size
        self._num_steps = num_steps
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End after the step that is being done."""
        self._stopping.set()

    async def run(self) -> None:
        """Train until `num_steps` are done or `stop` is called. Raises UsageError when a server refuses a request."""
        self._tell()
        try:
            await self._push_weights()
            self._tell()
            await self._register()
            while self.status.step < self._num_steps and not self._stopping.is_set():
                await self._train(await self._next_batch())
                self._tell()
        except Stopped:
            pass
        finally:
            self._tell()
        if self._checkpoint is not None:
            self._checkpoint.write(self._learner, self.status.step)

    async def _train(self, groups: list[dict[str, Any]]) -> None:
        started = time.monotonic()
        update = await asyncio.to_thread(self._learner.update, groups)
        status = self.status
        status.step += 1
        status.groups_unusable += update.unusable_groups
        status.mean_score = update.mean_score
        status.gradient_norm = update.gradient_norm
        if update.metrics is not None:
            status.loss, status.entropy = update.metrics.loss, update.metrics.entropy
            status.kl, status.clip_fraction = update.metrics.kl, update.metrics.clip_fraction
        status.training_seconds += time.monotonic() - started
        if self._checkpoint is not None and self._checkpoint.is_due(status.step):
            await asyncio.to_thread(self._checkpoint.write, self._learner, status.step)
        await self._push_weights()

    async def _next_batch(self) -> list[dict[str, Any]]:
        started = time.monotonic()
        groups: list[dict[str, Any]] = []
        while not groups:
            try:
                groups = await self._until_there(self._api.next_batch)
            except NotRegistered as error:
                logger.warning("%s; registering again", error)
                await self._register()
            if not groups:
                await self._pause(POLL_SECONDS)
        self.status.groups_received += len(groups)
        self.status.sequences_received += sum(len(group.get("tokens", ())) for group in groups)
        self.status.waiting_seconds += time.monotonic() - started
        return groups

    async def _register(self) -> None:
        kept = self._checkpoint
        await self._until_there(
            lambda: self._api.register(
                batch_size=self._batch_size,
                max_token_len=self._learner.policy.shape.positions,
                step=self.status.step,
                num_steps=self._num_steps,
                checkpoint_dir="" if kept is None else str(kept.directory),
                checkpoint_interval=0 if kept is None else kept.interval,
            )
        )

    async def _push_weights(self) -> None:
        started = time.monotonic()
        parameters, version = self._learner.policy.parameters, self.status.step
        await self._until_there(lambda: self._inference.update_weights(parameters, version))
        self.status.weight_version = version
        self.status.pushing_seconds += time.monotonic() - started

    async def _until_there(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, however long it takes for the server to be there. Raises Stopped."""
        while True:
            try:
                answer = await ask()
            except Unreachable as error:
                if str(error) != self.status.waiting_for:
                    logger.warning("waiting: %s", error)
                    self.status.waiting_for = str(error)
                    self._tell()
                await self._pause(RETRY_SECONDS)
            else:
                if self.status.waiting_for:
                    self.status.waiting_for = ""
                    self._tell()
                return answer

    async def _pause(self, seconds: float) -> None:
        """Raises Stopped when the trainer is told to stop meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
            raise Stopped

    def _tell(self) -> None:
        self._status_file.write(self.status)
