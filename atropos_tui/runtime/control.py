"""The operator's commands to a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import FailReason, RequeueReason

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

# Who pauses a run where nobody is named: only its own process calls these without a name.
OWN_CODE = "the environment's code"


class RunControl:
    """Called on the runtime's loop. Each returns at once; the effect shows as events.

    AtroposError says why a command makes no sense now, where one can make none.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def pause(self, by: str = OWN_CODE) -> None:
        """Start no further group; those in flight finish and are sent. `by` is who wants it, for people."""
        self._runtime.scheduler.pause(by)

    def pause_now(self, by: str = OWN_CODE) -> None:
        """Start no further group and put those in flight back into the backlog."""
        self._runtime.scheduler.pause(by, requeue=True)

    def resume(self) -> None:
        self._runtime.scheduler.resume()

    def step_group(self) -> None:
        """While paused, run exactly one more group."""
        self._runtime.scheduler.step()

    def cancel_group(self, group_id: int) -> None:
        """Give up one group that is still being made: it fails as `cancelled`, and its item is not tried again."""
        self._runtime.scheduler.recall_one(group_id, FailReason.CANCELLED)

    def requeue_group(self, group_id: int) -> None:
        """Put one group that is still being made back into the backlog, from where its item is taken first."""
        self._runtime.scheduler.recall_one(group_id, RequeueReason.OPERATOR)

    def evaluate(self) -> None:
        """Evaluate now, also while paused; what training does meanwhile is `eval_handling`'s to say."""
        scheduler = self._runtime.scheduler
        if scheduler.stopping:
            raise AtroposError(f"the run ends: {scheduler.stopping}", "start it again to evaluate")
        if not scheduler.started:
            waits = f", it waits for {scheduler.waiting_for}" if scheduler.waiting_for else ""
            raise AtroposError(f"the run has not begun yet{waits}", "try again when it runs")
        if self._runtime.evaluations.running:
            raise AtroposError("an evaluation is running already", "wait for its end")
        self._runtime.step_checks.evaluate()

    def stop(self, why: str = "stopped by the operator") -> None:
        """End the run in good order: what is in flight gets some seconds. Said twice, it is put back at once."""
        self._runtime.scheduler.stop(why)
