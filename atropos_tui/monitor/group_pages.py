"""Ended groups for reading: the newest from memory, all others from the run file where there is one."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.group_detail import GroupPage
from atropos_tui.monitor.group_store import GroupFilter, GroupStore, KeptGroup
from atropos_tui.monitor.run_file.place import RunFileError
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.run_file.recorder import Recorder


class GroupPages:
    """Used on one event loop. What is not yet in the file comes from memory, so that no group is missed or doubled."""

    def __init__(self, store: GroupStore, recorder: Recorder | None) -> None:
        self._store = store
        self._recorder = recorder
        self._reader: RunFileReader | None = None

    async def page(self, wanted: GroupFilter, older_than: int | None, limit: int) -> GroupPage:
        """Newest first. Raises AtroposError when texts are to be searched and none are recorded."""
        reader = await self._run_file()
        if reader is None or self._recorder is None:
            if wanted.search:
                raise AtroposError("nothing is recorded that could be searched", "start the run with --record messages")
            return self._store.page(wanted, older_than, limit)
        if wanted.search or wanted.reads_texts or not wanted.by_time:
            return await asyncio.to_thread(reader.page, wanted, older_than, limit)
        # More may be written while this is read, and would then come from both.
        written = self._recorder.written_place
        head = GroupPage((), None, 0)
        if older_than is None or ((known := self._store.find(older_than)) is not None and known.order > written):
            head = self._store.page(wanted, older_than, limit, above=written)
            older_than = None
        elif (unwritten := self._store.page(wanted, None, 1, above=written)).total:
            head = replace(head, total=unwritten.total)
        if len(head.rows) >= limit:
            file_total = (await asyncio.to_thread(reader.page, wanted, None, 1, written)).total
            last = head.rows[-1].group_id
            return GroupPage(head.rows, last if head.older_than or file_total else None, head.total + file_total)
        tail = await asyncio.to_thread(reader.page, wanted, older_than, limit - len(head.rows), written)
        return GroupPage((*head.rows, *tail.rows), tail.older_than, head.total + tail.total)

    async def find(self, group_id: int) -> KeptGroup | None:
        """The group in full, from memory where its contents are there."""
        kept = self._store.find(group_id)
        if kept is not None and kept.rollouts is not None:
            return kept
        reader = await self._run_file()
        recorded = await asyncio.to_thread(reader.find, group_id) if reader is not None else None
        return recorded or kept

    async def _run_file(self) -> RunFileReader | None:
        """None while nothing is written."""
        if self._reader is None and self._recorder is not None and self._recorder.written_place:
            try:
                self._reader = await asyncio.to_thread(RunFileReader, self._recorder.path)
            except (RunFileError, sqlite3.Error):
                # The recorder tells why the file is not as it should be; memory is what is left.
                return None
        return self._reader
