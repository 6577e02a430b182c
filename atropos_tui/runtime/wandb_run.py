"""Weights & Biases as an observer: in a thread of its own, so that it can be slow or away without slowing a rollout."""

from __future__ import annotations

import asyncio
import logging
import random
import string
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from types import ModuleType
from typing import Any

from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.observer_thread import ObserverThread

logger = logging.getLogger(__name__)

STEP_AXIS = "trainer_step"
PENDING_LIMIT = 100
START_SECONDS = 60.0


def run_name(name: str) -> str:
    """`name-2026-11-29-qwerty`, so that runs of the same environment can be told apart."""
    return f"{name}-{datetime.now():%Y-%m-%d}-{''.join(random.choices(string.ascii_lowercase, k=6))}"


class WandbRun:
    """One run at W&B. What fails is logged and dropped; nothing here raises."""

    def __init__(self) -> None:
        self._thread = ObserverThread("wandb")
        self._started: Future[bool] | None = None
        self._wandb: ModuleType | None = None
        self._dropped = 0

    def start(self, **settings: Any) -> None:
        """Begin `wandb.init(**settings)` in the background."""
        self._started = self._thread.submit(self._init, settings)

    async def ready(self) -> bool:
        """Whether the run is there, waiting for it a bounded time: environments call `wandb.log` themselves."""
        if self._started is None:
            return False
        return await _within(self._started, START_SECONDS) and self._started.result()

    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        """Hand metrics over. Their axis is a metric of its own, since W&B refuses steps that go back."""
        if self._started is None:
            return
        if self._thread.pending >= PENDING_LIMIT:
            self._dropped += 1
            logger.warning("W&B is too slow: %d sets of metrics dropped so far", self._dropped)
            return
        self._thread.submit(self._guarded, "log", {**metrics, STEP_AXIS: step})

    async def finish(self, seconds: float) -> None:
        """Upload what is left, for at most so many seconds."""
        if self._started is not None:
            finished = self._thread.submit(self._guarded, "finish")
            self._thread.close()
            self._started = None
            if not await _within(finished, seconds):
                logger.warning("W&B did not finish within %g s", seconds)

    # -- in the thread

    def _init(self, settings: dict[str, Any]) -> bool:
        try:
            import wandb

            run = wandb.init(**settings)
            run.define_metric(STEP_AXIS)
            run.define_metric("*", step_metric=STEP_AXIS)
        except Exception as error:  # noqa: BLE001  an observer must not break the run
            logger.error("W&B is left out: %s", describe(error))
            return False
        self._wandb = wandb
        return True

    def _guarded(self, method: str, *arguments: Any) -> None:
        if self._wandb is None:
            return
        try:
            getattr(self._wandb, method)(*arguments)
        except Exception as error:  # noqa: BLE001  an observer must not break the run
            logger.error("wandb.%s: %s", method, describe(error))


async def _within(call: Future[Any], seconds: float) -> bool:
    """Whether the call ends in time; it goes on if it doesn't."""
    done, _ = await asyncio.wait({asyncio.wrap_future(call)}, timeout=seconds)
    return bool(done)
