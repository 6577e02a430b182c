"""The `evaluate` mode: one evaluation, without a trainer or a trajectory API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atropos_tui.errors import AtroposError
from atropos_tui.runtime.stopping import Stopped, unless_stopped

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime


async def evaluate(runtime: Runtime) -> dict[str, float]:
    """Set up and evaluate once; the metrics that are numbers. Raises what `setup()` raises, and when it fails."""
    try:
        return await unless_stopped(runtime.scheduler.stop_said, _evaluate(runtime))
    except Stopped:
        raise AtroposError("stopped before the evaluation was done") from None
    finally:
        await runtime.close(wandb_seconds=30.0)


async def _evaluate(runtime: Runtime) -> dict[str, float]:
    await runtime.calls.run(runtime.env.setup)
    if not await runtime.evaluations.run(step=runtime.env.curr_step):
        raise AtroposError(f"the evaluation failed: {runtime.evaluations.error}", "its traceback is in the log")
    return runtime.evaluations.metrics
