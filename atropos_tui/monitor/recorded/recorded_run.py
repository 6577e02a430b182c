"""A run file as a run to watch: its newest moment, or any other, and the groups that ended until then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from atropos_tui.monitor.client import RefusedError
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.packed_content import Decode
from atropos_tui.monitor.recorded.moments import Moments, crashed
from atropos_tui.monitor.recorded.read_only_run import ReadOnlyRun
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import GroupDetail, GroupPage, RunSnapshot

LOOK_SECONDS = 0.5


class RecordedRun(ReadOnlyRun):
    """Reads on threads. `is_alive` tells whether a worker still writes, so that a run that died is told from one that
    goes on; `decode` gives the text of tokens. Raises RunFileError when the file cannot be read.
    """

    def __init__(
        self, path: Path, decode: Decode, is_alive: Callable[[], bool] = lambda: False, *, last_words: str = ""
    ) -> None:
        self._reader = RunFileReader(path)
        self._moments = Moments(self._reader)
        self._decode = decode
        self._is_alive = is_alive
        self._last_words = last_words
        self._wanted: float | None = None
        self._moved = asyncio.Event()

    def extent(self) -> tuple[float, float]:
        """From when to when there is something to see, in Unix seconds."""
        return self._moments.extent()

    def seek(self, wall: float | None) -> None:
        """Show the run as it was at this time (Unix seconds), or its newest moment again (None)."""
        self._wanted = wall
        self._moved.set()

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """The wanted moment, and further ones when the file grows or another is wanted. Does not end."""
        shown: tuple[float | None, int] | None = None
        if self._wanted is None and (quick := await asyncio.to_thread(self._moments.quick)) is not None:
            yield await asyncio.to_thread(self._as_it_is, quick)
        while True:
            self._moved.clear()
            wanted = self._wanted
            newest = (await asyncio.to_thread(self._reader.extent)).seq
            if shown != (wanted, newest if wanted is None else 0):
                shown = (wanted, newest if wanted is None else 0)
                yield await asyncio.to_thread(self._moment, wanted)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), max(LOOK_SECONDS, 1.0 / hz))

    async def groups(
        self, *, older_than: int | None = None, limit: int = 50, outcome: str = "", reason: str = "", search: str = ""
    ) -> GroupPage:
        """Groups that ended, newest first; those whose messages match where `search` is given."""
        wanted = GroupFilter(outcome=outcome, reason=reason, search=search)
        return await asyncio.to_thread(self._reader.page, wanted, older_than, limit)

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full. RefusedError with status 404 when the file has none of that number."""
        kept = await asyncio.to_thread(self._reader.find, group_id)
        if kept is None:
            raise RefusedError(f"group {group_id} is not in {self._reader.path}", status=404)
        return await asyncio.to_thread(kept.detail, self._decode)

    async def close(self) -> None:
        await asyncio.to_thread(self._reader.close)

    def newest(self) -> RunSnapshot:
        """The last moment in the file, as it was recorded. Blocks."""
        return self._moments.newest()

    def _moment(self, wall: float | None) -> RunSnapshot:
        return self._as_it_is(self._moments.newest()) if wall is None else self._moments.at(wall)

    def _as_it_is(self, newest: RunSnapshot) -> RunSnapshot:
        if self._is_alive():
            return newest
        return crashed(newest, self._last_words or "the record ends here without a word", self._reader.extent().wall)
