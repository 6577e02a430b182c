"""Where the screen gets a run from: a running worker through its client, a recorded run, or a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.recorded.timeline import Stride, Timeline
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot


class RunSource(Protocol):
    """A run to watch. Failures raise AtroposError or OSError."""

    @property
    def notes_file(self) -> Path | None:
        """Where bookmarks and notes on the run are kept; None where its directory is not on this machine."""
        ...

    def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        """Whole snapshots, at most `hz` a second, only when something changed; ends when the run's process does."""
        ...

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        """Groups that ended, those of the query and in its order. UsageError for a filter that cannot be read."""
        ...

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full."""
        ...

    async def pause(self) -> None: ...

    async def pause_now(self) -> None: ...

    async def resume(self) -> None: ...

    async def step_group(self) -> None: ...

    async def evaluate_now(self) -> bool:
        """False: the environment's code holds its loop, and the run takes it as soon as it lets go."""
        ...

    async def cancel_group(self, group_id: int) -> bool:
        """Give up a group in flight and its item; the bool as of `evaluate_now`."""
        ...

    async def requeue_group(self, group_id: int) -> bool:
        """Put the item of a group in flight back into the backlog; the bool as of `evaluate_now`."""
        ...

    async def config(self) -> tuple[ConfigRow, ...]:
        """The merged configuration, in the order in which it is declared."""
        ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class RecordedSource(Protocol):
    """What a source of a recorded run can do besides: go to another moment, which the stream then gives."""

    @property
    def timeline(self) -> Timeline:
        """Where one is; known without waiting."""
        ...

    def seek(self, position: float | None) -> None:
        """To a position of the timeline; None: to the newest moment, and along with it."""
        ...

    async def move(self, stride: Stride, by: int) -> None:
        """So many strides later; earlier when negative."""
        ...


@runtime_checkable
class RestartableSource(RunSource, Protocol):
    """A source whose worker can be started again when it is gone."""

    async def restart(self) -> RunSource:
        """What is to be watched from then on, once the new worker is ready. Raises AtroposError if it does not come."""
        ...


class NoRun:
    """Stands where no run is open yet."""

    notes_file: Path | None = None

    async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        del hz
        await asyncio.Event().wait()
        yield RunSnapshot()

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        del older_than, limit, outcome, reason, query
        return GroupPage((), None, 0)

    async def group(self, group_id: int) -> GroupDetail:
        raise _no_run()

    async def pause(self) -> None:
        raise _no_run()

    async def pause_now(self) -> None:
        raise _no_run()

    async def resume(self) -> None:
        raise _no_run()

    async def step_group(self) -> None:
        raise _no_run()

    async def evaluate_now(self) -> bool:
        raise _no_run()

    async def cancel_group(self, group_id: int) -> bool:
        raise _no_run()

    async def requeue_group(self, group_id: int) -> bool:
        raise _no_run()

    async def config(self) -> tuple[ConfigRow, ...]:
        return ()

    async def stop(self) -> None:
        raise _no_run()

    async def close(self) -> None:
        return


def _no_run() -> AtroposError:
    return AtroposError("no run is open", "choose one in the fleet")
