"""A run that is only watched, behind the real monitor: for benchmarks and pictures."""

from __future__ import annotations


class NoCommands:
    """What would be asked of it does nothing."""

    def pause(self, by: str) -> None: ...

    def pause_now(self, by: str) -> None: ...

    def resume(self) -> None: ...

    def step_group(self) -> None: ...

    async def cancel_group(self, group_id: int) -> bool:
        return False

    async def requeue_group(self, group_id: int) -> bool:
        return False

    async def evaluate(self) -> bool:
        return False

    def stop(self) -> None: ...
