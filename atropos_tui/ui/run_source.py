"""Where the screen gets a run from: a running worker through its client, a recorded run, or a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from atropos_tui.monitor.snapshot import GroupDetail, GroupPage, RunSnapshot


class RunSource(Protocol):
    """A run to watch. Failures raise AtroposError or OSError."""

    def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        """Whole snapshots, at most `hz` a second, only when something changed; ends when the run's process does."""
        ...

    async def groups(
        self, *, older_than: int | None = None, limit: int = 50, outcome: str = "", reason: str = ""
    ) -> GroupPage:
        """Groups that ended, newest first."""
        ...

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full."""
        ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def step_group(self) -> None: ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...
