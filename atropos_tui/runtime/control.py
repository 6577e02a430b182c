"""The operator's commands to a run."""

from __future__ import annotations

from atropos_tui.runtime.scheduling import Scheduler


class RunControl:
    """Called on the runtime's loop. Each returns at once; the effect shows as StateChanged events."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def pause(self) -> None:
        """Start no further group; those in flight finish and are sent."""
        self._scheduler.pause()

    def pause_now(self) -> None:
        """Start no further group and put those in flight back into the backlog."""
        self._scheduler.pause(requeue=True)

    def resume(self) -> None:
        self._scheduler.resume()

    def step_group(self) -> None:
        """While paused, run exactly one more group."""
        self._scheduler.step()

    def stop(self, why: str = "stopped by the operator") -> None:
        """End the run in good order: what is in flight gets some seconds. Said twice, it is put back at once."""
        self._scheduler.stop(why)
