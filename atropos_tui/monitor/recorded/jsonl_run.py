"""A JSONL file of scored groups as a run to watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from atropos_tui.monitor.client import RefusedError
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.packed_content import Decode
from atropos_tui.monitor.recorded.jsonl_file import JsonlFile
from atropos_tui.monitor.recorded.read_only_run import ReadOnlyRun
from atropos_tui.monitor.snapshot import GroupDetail, GroupPage, RunSnapshot

LOOK_SECONDS = 0.5


class JsonlRun(ReadOnlyRun):
    """Reads on threads; methods raise OSError when the file cannot be read. `decode` gives the text of tokens."""

    def __init__(self, path: Path, decode: Decode) -> None:
        self._file = JsonlFile(path)
        self._decode = decode
        self._finished = False

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """All groups, and again whenever the file has grown. Does not end."""
        shown = False
        while True:
            grew = await asyncio.to_thread(self._file.read_on)
            if not self._finished:
                self._finished = True
                await asyncio.to_thread(self._file.finish)
            if grew or not shown:
                shown = True
                yield await asyncio.to_thread(self._file.snapshot)
            await asyncio.sleep(max(LOOK_SECONDS, 1.0 / hz))

    async def groups(
        self, *, older_than: int | None = None, limit: int = 50, outcome: str = "", reason: str = "", search: str = ""
    ) -> GroupPage:
        """The last lines first."""
        wanted = GroupFilter(outcome=outcome, reason=reason, search=search)
        return await asyncio.to_thread(self._file.page, wanted, older_than, limit)

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full. RefusedError with status 404 when there is no such line."""
        kept = await asyncio.to_thread(self._file.find, group_id)
        if kept is None:
            raise RefusedError(f"there is no group {group_id} in the file", status=404)
        return await asyncio.to_thread(kept.detail, self._decode)

    async def close(self) -> None:
        """Nothing is open between reads."""
