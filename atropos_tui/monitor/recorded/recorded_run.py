"""A run file as a run to watch: its newest moment, or any other, and the groups that ended until then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from atropos_tui.monitor.client import RefusedError
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.notes_file import notes_beside
from atropos_tui.monitor.recorded.crash import crashed
from atropos_tui.monitor.recorded.read_only_run import ReadOnlyRun
from atropos_tui.monitor.recorded.timeline import Stride, Timeline, neighbour
from atropos_tui.monitor.run_file.glance import Glance, glance
from atropos_tui.monitor.run_file.schema import open_for_reading
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot

if TYPE_CHECKING:
    from atropos_tui.monitor.packed_content import Decode
    from atropos_tui.monitor.recorded.archive import Archive

LOOK_SECONDS = 0.5
# The first picture is painted in this time; loading the rest would hold it up.
PAINT_SECONDS = 0.1


class RecordedRun(ReadOnlyRun):
    """Reads on threads. `is_alive` tells whether a worker still writes, so that a run that died is told from one that
    goes on; `decode` gives the text of tokens. Raises RunFileError when the file cannot be read.
    """

    def __init__(
        self, path: Path, decode: Decode, is_alive: Callable[[], bool] = lambda: False, *, last_words: str = ""
    ) -> None:
        open_for_reading(path).close()
        self._path = path
        self._archive: Archive | None = None
        self._archive_lock = Lock()
        self._decode = decode
        self._is_alive = is_alive
        self._last_words = last_words
        self._known = Timeline()
        self._at: float | None = None
        self._exact = True
        self._shown_seq = 0
        self._moved = asyncio.Event()
        self._moving = asyncio.Lock()

    @property
    def timeline(self) -> Timeline:
        """From when to when there is something to see, and what is looked at; known once the stream has begun."""
        return replace(self._known, at=self._at, exact=self._exact)

    def seek(self, position: float | None) -> None:
        """Show the run as it was at this time (Unix seconds), or its newest moment again (None)."""
        self._at = position
        self._moved.set()

    async def move(self, stride: Stride, by: int) -> None:
        """Show the moment so many strides later, or earlier when negative."""
        async with self._moving:
            if stride is Stride.EVENT:
                position = await asyncio.to_thread(self._event_beside, self.timeline.position, by)
            elif stride is Stride.TRAINER_STEP:
                starts = await asyncio.to_thread(lambda: self._opened().steps.starts())
                position = neighbour(starts, self.timeline.position, by)
            else:
                position = self.timeline.moved(stride, by)
            self.seek(position)

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """The wanted moment, and further ones when the file grows or another is wanted. Does not end."""
        shown: tuple[float | None, int] | None = None
        if self._archive is None and self._at is None:
            first, follows = await asyncio.to_thread(lambda: (glance(self._path), self._is_alive()))
            self._known = Timeline(first.begin, first.end, follows=follows, last_seq=first.last_seq)
            if (snapshot := self._at_first(first)) is not None:
                shown = (None, first.last_seq) if self._exact else None
                yield snapshot
                await self._wait(PAINT_SECONDS)
        while True:
            self._moved.clear()
            self._known = await asyncio.to_thread(self._how_far)
            wanted = (self._at, self._known.last_seq if self._at is None else 0)
            if wanted != shown:
                async for snapshot in self._approached(wanted[0]):
                    self._shown_seq = snapshot.seq
                    shown = wanted if self._exact else None
                    yield snapshot
            await self._wait(max(LOOK_SECONDS, 1.0 / hz))

    async def _wait(self, seconds: float) -> None:
        """So long, or until another moment is wanted."""
        if not self._moved.is_set():
            # Not wait_for, which before Python 3.12 may swallow a cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._moved.wait()

    @property
    def notes_file(self) -> Path:
        """Where notes on it are kept."""
        return notes_beside(self._path)

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
        """Groups that had ended at this moment, newest first; where `search` is given those whose messages match."""
        until = None if self._at is None else self._shown_seq

        def page() -> GroupPage:
            from atropos_tui.monitor.group_store import GroupFilter

            reader = self._opened().reader
            wanted = GroupFilter.of(query, outcome=outcome, reason=reason, search=search)
            return reader.page(wanted, older_than, limit, None if until is None else reader.place_until(until))

        return await asyncio.to_thread(page)

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full. RefusedError with status 404 when the file has none of that number."""
        kept = await asyncio.to_thread(lambda: self._opened().reader.find(group_id))
        if kept is None:
            raise RefusedError(f"group {group_id} is not in {self._path}", status=404)
        return await asyncio.to_thread(kept.detail, self._decode)

    async def config(self) -> tuple[ConfigRow, ...]:
        """The configuration of the newest life in the file."""
        return await asyncio.to_thread(lambda: self._opened().config())

    async def close(self) -> None:
        if self._archive is not None:
            await asyncio.to_thread(self._archive.reader.close)

    def newest(self) -> RunSnapshot:
        """The last moment in the file, as it was recorded. Blocks."""
        return self._opened().moments.newest()

    async def _approached(self, at: float | None) -> AsyncIterator[RunSnapshot]:
        """The moment; before it, where it takes long to fold, what was kept shortly before."""
        stand_in = await asyncio.to_thread(lambda: self._opened().moments.stand_in(at))
        if stand_in is not None:
            self._exact = at is None and stand_in.seq == self._known.last_seq
            yield await asyncio.to_thread(self._as_it_is, stand_in, at)
            if self._exact:
                return
        while (snapshot := await asyncio.to_thread(lambda: self._opened().moments.folded(at))) is None:
            if self._at != at:
                return
        self._exact = True
        yield await asyncio.to_thread(self._as_it_is, snapshot, at)

    def _how_far(self) -> Timeline:
        archive = self._opened()
        begin, end = archive.moments.extent()
        return Timeline(begin, end, follows=self._is_alive(), last_seq=archive.reader.extent().seq)

    def _event_beside(self, position: float, by: int) -> float | None:
        reader = self._opened().reader
        for _ in range(abs(by)):
            found = reader.event_after(position) if by > 0 else reader.event_before(position)
            if found is None:
                return None if by > 0 else self._known.begin
            position = found
        return position

    def _as_it_is(self, snapshot: RunSnapshot, at: float | None) -> RunSnapshot:
        """With what is known beside the events: what the record lacks, and whether the worker is gone."""
        reader = self._opened().reader
        snapshot = replace(snapshot, record=reader.record())
        if at is not None or self._is_alive():
            return snapshot
        return self._crashed(snapshot, reader.extent().wall)

    def _at_first(self, first: Glance) -> RunSnapshot | None:
        if first.snapshot is None:
            return None
        self._exact, self._shown_seq = first.is_exact, first.snapshot.seq
        return first.snapshot if self._known.follows else self._crashed(first.snapshot, first.end)

    def _crashed(self, snapshot: RunSnapshot, at: float) -> RunSnapshot:
        return crashed(snapshot, self._last_words or "the record ends here without a word", at)

    def _opened(self) -> Archive:
        """The whole of the file. Blocks, the first time for as long as loading takes."""
        with self._archive_lock:
            if self._archive is None:
                from atropos_tui.monitor.recorded.archive import Archive

                self._archive = Archive(self._path)
            return self._archive
