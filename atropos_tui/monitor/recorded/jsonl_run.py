"""A JSONL file of scored groups as a run to watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from atropos_tui.monitor.client import RefusedError
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.notes_file import notes_beside
from atropos_tui.monitor.packed_content import Decode
from atropos_tui.monitor.recorded.jsonl_file import JsonlFile
from atropos_tui.monitor.recorded.read_only_run import ReadOnlyRun
from atropos_tui.monitor.recorded.timeline import Stride, Timeline
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot

LOOK_SECONDS = 0.5


class JsonlRun(ReadOnlyRun):
    """Reads on threads; methods raise OSError when the file cannot be read. `decode` gives the text of tokens.

    Its moments are its lines: after the tenth, ten groups are delivered.
    """

    def __init__(self, path: Path, decode: Decode) -> None:
        self._file = JsonlFile(path)
        self._decode = decode
        self._finished = False
        self._line: int | None = None
        self._moved = asyncio.Event()

    @property
    def timeline(self) -> Timeline:
        """Positions are numbers of lines."""
        lines = self._file.lines
        return Timeline(0.0, float(lines), None if self._line is None else float(self._line), False, last_seq=lines)

    def seek(self, position: float | None) -> None:
        """Show the file as it was after this line, or as it is (None)."""
        self._line = None if position is None else round(position)
        self._moved.set()

    async def move(self, stride: Stride, by: int) -> None:
        """Show the file so many strides later, or earlier when negative. UsageError where it tells no such thing."""
        timeline = self.timeline
        if stride is Stride.EVENT:
            position = timeline.position + by
            self.seek(None if position >= timeline.end else max(0.0, position))
        else:
            self.seek(timeline.moved(stride, by))

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """The wanted line, and again whenever the file has grown or another is wanted. Does not end."""
        shown: tuple[int | None, int] | None = None
        while True:
            self._moved.clear()
            await asyncio.to_thread(self._file.read_on)
            if not self._finished:
                self._finished = True
                await asyncio.to_thread(self._file.finish)
            wanted = (self._line, self._file.lines)
            if wanted != shown:
                shown = wanted
                yield await asyncio.to_thread(self._file.snapshot, self._line)
            if not self._moved.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._moved.wait(), max(LOOK_SECONDS, 1.0 / hz))

    @property
    def notes_file(self) -> Path:
        """Where notes on it are kept."""
        return notes_beside(self._file.path)

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        search: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        """The last lines first."""
        wanted = GroupFilter.of(query, outcome=outcome, reason=reason, search=search)
        return await asyncio.to_thread(self._file.page, wanted, older_than, limit, self._line)

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full. RefusedError with status 404 when there is no such line."""
        kept = await asyncio.to_thread(self._file.find, group_id)
        if kept is None:
            raise RefusedError(f"there is no group {group_id} in the file", status=404)
        return await asyncio.to_thread(kept.detail, self._decode)

    async def config(self) -> tuple[ConfigRow, ...]:
        """The file tells none."""
        return ()

    async def close(self) -> None:
        """Nothing is open between reads."""
