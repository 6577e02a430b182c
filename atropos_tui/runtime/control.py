"""The operator's commands to a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime


class RunControl:
    """Called on the runtime's loop. Each returns at once; the effect shows as StateChanged events."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def pause(self) -> None:
        """Start no further group; those in flight finish and are sent."""
        self._runtime.scheduler.pause()

    def pause_now(self) -> None:
        """Start no further group and put those in flight back into the backlog."""
        self._runtime.scheduler.pause(requeue=True)

    def resume(self) -> None:
        self._runtime.scheduler.resume()

    def step_group(self) -> None:
        """While paused, run exactly one more group."""
        self._runtime.scheduler.step()

    def evaluate(self) -> None:
        """Evaluate now, unless an evaluation runs."""
        self._runtime.step_checks.evaluate()

    def stop(self, why: str = "stopped by the operator") -> None:
        """End the run in good order: what is in flight gets some seconds. Said twice, it is put back at once."""
        self._runtime.scheduler.stop(why)
