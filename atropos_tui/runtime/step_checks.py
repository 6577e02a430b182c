"""What a new step of the trainer asks for: an evaluation, a checkpoint, metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from atropos_tui.runtime.checkpoints import crosses
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.metrics import OutcomeCounts, ended

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

LOG_AT_LEAST_EVERY = 60.0


class StepChecks:
    """The work behind `BaseEnv.env_step_checks`, and metrics in general."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._env = runtime.env
        self._evaluation_due = False
        self._logged_at = time.monotonic()
        self._ended_before = 0
        self._outcomes = OutcomeCounts()
        self._logging = asyncio.Lock()
        self._log_task: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Compare the step we know with the trainer's, and do what lies between."""
        env = self._env
        before, after = env.curr_step, int(env.status_dict["current_step"])
        if crosses(before, after, env.config.steps_per_eval):
            self._evaluation_due = True
        if crosses(before, after, env.checkpoint_interval):
            self.save(after // env.checkpoint_interval * env.checkpoint_interval)
        env.curr_step = after
        scheduler = self._runtime.scheduler
        if self._evaluation_due and not scheduler.paused and not scheduler.stopping:
            self._evaluation_due = False
            self.evaluate()
        if not self._logging.locked() and self._worth_logging(stepped=after != before):
            self._log_task = asyncio.create_task(self.log())

    def evaluate(self) -> None:
        """Start an evaluation at the step the environment knows; not one beside another."""
        self._env.eval_runner = self._runtime.evaluations.start(self._env.curr_step) or self._env.eval_runner

    def save(self, step: int) -> None:
        try:
            self._env.save_checkpoint(step)
        except Exception as error:
            logger.error("checkpoint of step %d: %s", step, describe(error), exc_info=error)

    def save_at_end(self) -> None:
        """So that a later run goes on where this one ended; only for runs that keep checkpoints."""
        if self._env.checkpoint_interval > 0 and self._env.curr_step > 0:
            self.save(self._env.curr_step)

    async def log(self) -> None:
        """Let the environment log its metrics; what goes wrong is told and harms nothing. One at a time."""
        async with self._logging:
            self._logged_at = time.monotonic()
            self._ended_before = self._ended()
            self._env.items_sent_this_step = 0
            await self._log_now()

    async def _log_now(self) -> None:
        env = self._env
        limit = env.config.worker_timeout
        try:
            if env.config.use_wandb:
                await self._runtime.wandb.ready()
                env.rollouts_for_wandb.extend(await asyncio.to_thread(self._runtime.table.decode))
            await self._runtime.calls.run(env.wandb_log, {}, limit=limit if limit > 0 else None)
        except Exception as error:
            logger.error("wandb_log: %s", describe(error), exc_info=error)

    def outcomes(self) -> dict[str, float]:
        """What became of groups since the last call."""
        return self._outcomes.since_last(self._runtime.stream.counts())

    def _worth_logging(self, stepped: bool) -> bool:
        """At each step, unless only a few groups have ended; and now and then though the trainer stands still."""
        ended = self._ended() - self._ended_before
        if time.monotonic() - self._logged_at >= LOG_AT_LEAST_EVERY:
            return stepped or ended > 0
        return stepped and not 0 < ended < self._env.config.min_items_sent_before_logging

    def _ended(self) -> int:
        return ended(self._runtime.stream.counts())
