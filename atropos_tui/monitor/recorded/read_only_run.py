"""What every recorded run answers to a command."""

from __future__ import annotations

from atropos_tui.errors import AtroposError


class ReadOnlyRun:
    """A run that cannot be commanded, because nobody is there to obey."""

    async def pause(self) -> None:
        raise _refused()

    async def pause_now(self) -> None:
        raise _refused()

    async def resume(self) -> None:
        raise _refused()

    async def step_group(self) -> None:
        raise _refused()

    async def cancel_group(self, group_id: int) -> bool:
        raise _refused()

    async def requeue_group(self, group_id: int) -> bool:
        raise _refused()

    async def evaluate_now(self) -> bool:
        raise _refused()

    async def stop(self) -> None:
        raise _refused()


def _refused() -> AtroposError:
    return AtroposError("this is a recorded run, which cannot be commanded", "attach to the run while it is alive")
