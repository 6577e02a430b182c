"""The `process` mode: a number of groups into a file, without a trainer or a trajectory API."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.html_page import generate_html
from atropos_tui.ledger import LedgerCounts, Outcome
from atropos_tui.runtime.backoff import FailureStreak
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.flight import Flight
from atropos_tui.runtime.masking import plain_values
from atropos_tui.runtime.stopping import Stopped, cancel, unless_stopped
from atropos_tui.runtime.wandb_run import run_name

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

# So many attempts in a row may come to nothing before the run gives up.
PATIENCE = 50


class ProcessingStopped(AtroposError):  # noqa: N818  says what happened, as the mode's result
    """Fewer groups were written than wanted, and why."""


@dataclass(frozen=True, slots=True)
class Processed:
    """How many items were asked for, and how many gave at least one group that is in the file."""

    wanted: int
    done: int
    attempts: int
    counts: LedgerCounts


class Processing:
    """Runs groups beside each other until enough are in the file. An item counts when a group of it was written."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._env = runtime.env
        self._wanted = int(self._env.n_groups_to_process)
        self._attempts = 0
        self._in_vain = 0
        self._streak = FailureStreak(longest_rest=5.0)
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> Processed:
        """Raises ProcessingStopped when attempts keep coming to nothing."""
        env = self._env
        env.curr_step = 0
        env.config.group_size = env.group_size_to_process
        more = True
        try:
            while env.curr_step < self._wanted and (more or self._running):
                while more and self._may_start():
                    more = await self._start_one()
                await self._wait()
                self._check_patience()
        finally:
            await cancel(self._running)
        return Processed(self._wanted, env.curr_step, self._attempts, self._runtime.stream.counts())

    def _may_start(self) -> bool:
        if self._streak.resting(time.monotonic()):
            return False
        limit = 1 if self._streak.probing else max(1, self._env.max_num_workers)
        return len(self._running) < min(limit, self._wanted - self._env.curr_step)

    async def _start_one(self) -> bool:
        """Start a group on the next item; False when there is none any more."""
        env = self._env
        try:
            item = await env.get_next_item()
        except Exception as error:
            logger.error("get_next_item: %s", describe(error), exc_info=error)
            self._in_vain += 1
            self._streak.failed(describe(error), time.monotonic())
            return True
        if item is None:
            return False
        self._attempts += 1
        flight = Flight(
            self._runtime.stream,
            self._runtime.numbers.next(),
            item,
            rollouts=env.config.group_size,
            step=env.curr_step,
        )
        task = asyncio.create_task(self._process(flight))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _process(self, flight: Flight) -> None:
        await self._runtime.rollouts.run(flight, do_send_to_api=False, abort_on_any_max_length_exceeded=False)
        if flight.written:
            self._env.curr_step += 1
            self._in_vain = 0
            self._streak.succeeded()
        else:
            self._in_vain += 1
            if flight.error:
                self._streak.failed(flight.error, time.monotonic())
        await self._runtime.step_checks.log()

    async def _wait(self) -> None:
        """Until something ended or a rest is over."""
        rest = self._streak.resting(time.monotonic())
        if self._running:
            await asyncio.wait(self._running, timeout=rest or None, return_when=asyncio.FIRST_COMPLETED)
        elif rest:
            await asyncio.sleep(rest)

    def _check_patience(self) -> None:
        done = self._env.curr_step
        if self._in_vain >= PATIENCE:
            raise ProcessingStopped(
                f"{self._in_vain} attempts in a row gave no group: {in_words(self._runtime.stream.counts())}",
                f"{done} of {self._wanted} groups are written",
            )


def in_words(counts: LedgerCounts) -> str:
    """`3 skipped (identical_scores 3), 17 failed (env_error 17)`"""
    told = []
    for outcome in (Outcome.SKIPPED, Outcome.REJECTED, Outcome.FAILED):
        number = counts.by_outcome[outcome]
        if number:
            reasons = ", ".join(f"{reason} {times}" for reason, times in counts.by_reason.get(outcome, {}).items())
            told.append(f"{number} {outcome} ({reasons})")
    return ", ".join(told) or "nothing was started"


async def process(runtime: Runtime) -> Processed:
    """Set up, make the groups, and write the page beside the file."""
    env = runtime.env
    env.process_mode = True
    try:
        return await unless_stopped(runtime.scheduler.stop_said, _process(runtime))
    except Stopped:
        told = f"stopped with {env.curr_step} of {env.n_groups_to_process} groups written"
        raise ProcessingStopped(told) from None
    finally:
        await runtime.close(wandb_seconds=30.0)
        if env.jsonl_writer is not None:
            await asyncio.to_thread(generate_html, env.jsonl_writer.path)


async def _process(runtime: Runtime) -> Processed:
    env = runtime.env
    if int(env.n_groups_to_process) < 1:
        raise UsageError(f"{env.n_groups_to_process} groups to process", "set --env.total_steps to their number")
    await runtime.calls.run(env.setup)
    if env.config.use_wandb:
        runtime.wandb.start(
            name=run_name(runtime.desired_name),
            project=env.wandb_project,
            group=env.wandb_group,
            config=plain_values(env.config),
        )
    return await Processing(runtime).run()
