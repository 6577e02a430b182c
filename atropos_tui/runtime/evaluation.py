"""Evaluations: started when the trainer crosses a multiple of steps, visible whatever becomes of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from atropos_tui.ledger.events import EvalEnded, EvalStarted
from atropos_tui.ledger.outcomes import RequeueReason
from atropos_tui.runtime.config import EvalHandlingEnum
from atropos_tui.runtime.failures import describe, traceback_text
from atropos_tui.runtime.metrics import finite_numbers

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)


class Evaluations:
    """Runs `evaluate()` of an environment, one at a time. `metrics` and `error` are those of the newest evaluation."""

    def __init__(self, runtime: Runtime) -> None:
        self.metrics: dict[str, float] = {}
        self.error = ""
        self._runtime = runtime
        self._env = runtime.env
        self._task: asyncio.Task[bool] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, step: int) -> asyncio.Task[bool] | None:
        """Start one in the background; None, with a warning, while the one before still runs."""
        if self.running:
            logger.warning("evaluation at step %d is left out, the one before still runs", step)
            return None
        scheduler = self._runtime.scheduler
        scheduler.evaluating = True
        if self._env.config.eval_handling is EvalHandlingEnum.STOP_TRAIN:
            scheduler.recall_all(RequeueReason.EVAL_STARTED)
        self._task = asyncio.create_task(self.run(step))
        self._task.add_done_callback(self._ended)
        scheduler.wake()
        return self._task

    async def run(self, step: int) -> bool:
        """One evaluation, to its end; whether it succeeded. Raises nothing but its own cancellation."""
        self.metrics = {}
        self._runtime.stream.publish(EvalStarted, step=step)
        started = time.monotonic()
        self.error = ""
        error: BaseException | None = None
        try:
            self.note(await self._runtime.calls.run(self._env.evaluate))
        except asyncio.CancelledError as cancelled:
            error = cancelled
            raise
        except Exception as failure:
            error = failure
            logger.error("evaluation at step %d: %s", step, describe(failure), exc_info=failure)
        finally:
            self.error = _in_words(error)
            self._runtime.stream.publish(
                EvalEnded,
                step=step,
                seconds=time.monotonic() - started,
                metrics=self.metrics,
                error=self.error,
                traceback=traceback_text(error) if error else "",
            )
        return error is None

    async def end(self, grace: float) -> None:
        """Let a running one finish for `grace` seconds, then cancel it."""
        if self._task is None or self._task.done():
            return
        await asyncio.wait({self._task}, timeout=grace)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=grace)

    def note(self, metrics: Any) -> None:
        """Keep the numbers among what an environment returned or logged."""
        if isinstance(metrics, Mapping):
            self.metrics.update(finite_numbers(metrics))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del task
        self._runtime.scheduler.evaluating = False
        self._runtime.scheduler.wake()


def _in_words(error: BaseException | None) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "cancelled, the run ended"
    return describe(error) if error is not None else ""
