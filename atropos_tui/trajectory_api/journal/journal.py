"""The journal as the run and the intake use it: what they note, and when it is written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, TypeAlias

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.group import QueuedGroup
from atropos_tui.trajectory_api.journal import contents as told
from atropos_tui.trajectory_api.journal.contents import Contents
from atropos_tui.trajectory_api.journal.filed_json import FiledJson, packed
from atropos_tui.trajectory_api.journal.held_file import HeldFile
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.journal.records import BrokenRecordError, Buffer
from atropos_tui.trajectory_api.journal.rewriting import Rewriting
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.stored_json import KeptJson
from atropos_tui.trajectory_api.wire import Registration

# Records of up to so many bytes are written at once: that is a copy into the system's memory, within a millisecond, and
# takes a fraction of what handing them to a thread does. But after a write took more seconds than this, as on a disk
# behind a network, the thread has them for so many times as long.
_AT_ONCE_BYTES: Final = 1024 * 1024
LONG_WRITE: Final = 0.01
_LEFT_TO_THREAD: Final = 10
REWRITE_AFTER: Final = 64 * 1024 * 1024
# While no more than this waits, its texts come into memory in their deflated form, so that a batch is had at once. What
# comes to a longer queue is left in the file: without a trainer it grows on the disk, not in memory.
IN_MEMORY: Final = 512 * 1024 * 1024

# Where a record is: in which file, and from which byte on.
Written: TypeAlias = tuple[HeldFile, int]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Change:
    """What the thread is to do. With `done` somebody waits for it, and it fails for them alone."""

    write: Callable[[], Written | None]
    done: asyncio.Future[Written] | None = None


class Journal:
    """An open journal. All methods but `close` belong to the event loop's thread; none of them blocks it."""

    def __init__(
        self,
        path: Path,
        *,
        rewrite_after: int = REWRITE_AFTER,
        long_write: float = LONG_WRITE,
        in_memory: int = IN_MEMORY,
    ) -> None:
        """Open or create the file. Raises UsageError when it is no journal, is in use, or cannot be used.

        It is written anew when `rewrite_after` bytes of it, and half of all, tell of groups that are gone. After a
        write that took more than `long_write` seconds the next ones are left to a thread for a while. When more than
        `in_memory` bytes wait, texts are left in the file.
        """
        self.path = path
        self.trouble = ""
        self._file = LogFile(path)
        self._contents: Contents = self._file.contents()
        # Records that could not be written and that nobody waits for: they go before the next ones.
        self._unwritten: list[Buffer] = []
        # Each count is written by one thread only, so that none needs a lock. The file belongs to whoever has work.
        self._changes: queue.SimpleQueue[_Change | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._handed_over = 0
        self._done = 0
        self._at_once_from = 0.0
        self._rewrite_after = rewrite_after
        self._long_write = long_write
        self._in_memory = in_memory
        # The bytes of each group that waits, of all of these, and of what has become of no more use.
        self._waiting_bytes = {number: found.end - found.start for number, found in self._contents.groups.items()}
        self._all_waiting_bytes = sum(self._waiting_bytes.values())
        self._dead_bytes = self._file.size - self._all_waiting_bytes
        self._rewriting: tuple[Rewriting, threading.Thread] | None = None

    def contents(self) -> Contents:
        """What was in the file when it was opened; once, for the texts of the groups are read from the file."""
        contents, self._contents = self._contents, Contents()
        return contents

    def waiting_groups(self, contents: Contents) -> Iterator[tuple[QueuedGroup, bool]]:
        """The groups that were not delivered, oldest first, and whether each was in the queue (else in a buffer)."""
        return contents.waiting_groups(self._file.file, self._in_memory)

    def latest(self, contents: Contents) -> KeptJson | None:
        """The text of the group that entered the queue last, if there was one."""
        return None if contents.latest is None else FiledJson.of_record(contents.latest, self._file.file)

    @property
    def leaves_texts_in_file(self) -> bool:
        """Whether so much waits that texts are not brought into memory."""
        return self._all_waiting_bytes > self._in_memory

    async def keep(self, groups: Sequence[QueuedGroup]) -> None:
        """Write accepted groups; returns when they are in the file. Raises RequestError (503) when they cannot be."""
        records = [told.group_record(group) for group in groups]
        sizes = [sum(map(len, record)) for record in records]
        self._waiting_bytes.update(zip((group.number for group in groups), sizes, strict=True))
        self._all_waiting_bytes += sum(sizes)
        try:
            file, start = await self._written(list(chain.from_iterable(records)), sum(sizes))
        except OSError as error:
            self._are_gone(group.number for group in groups)
            fault = f"the journal {self.path} cannot be written: {error.strerror}"
            raise RequestError(503, fault, "send again later") from error
        for group, record, size in zip(groups, records, sizes, strict=True):
            if not group.stored.deflated or self.leaves_texts_in_file:
                # Its memory serves the next one: fresh memory for each would cost as much time as parsing them.
                form, _ = packed(group.stored)
                group.stored = FiledJson(file, start + len(record[0]), start + size, form, group.stored.size)
            start += size

    def entered(self, groups: Iterable[QueuedGroup]) -> None:
        """Note that groups are in the queue."""
        self._note(told.entered_record([group.number for group in groups]))

    def delivered(self, groups: Iterable[QueuedGroup], step: int) -> None:
        numbers = [group.number for group in groups]
        self._are_gone(numbers)
        self._note(told.delivered_record(numbers, step))
        self._rewrite_if_worthwhile()

    def registered(self, registration: Registration, step: int) -> None:
        self._note(told.registered_record(registration, step))

    def started(self) -> None:
        self._note(told.started_record())

    def environment(self, row: Environment) -> None:
        self._note(told.environment_record(row))

    def reset(self) -> None:
        self._are_gone(list(self._waiting_bytes))
        self._note(told.reset_record())
        self._rewrite_if_worthwhile()

    def close(self) -> None:
        """Write what still waits, and close the file."""
        if self._thread is not None:
            self._changes.put(None)
            self._thread.join()
            self._thread = None
        if self._rewriting is not None:
            rewriting, thread = self._rewriting
            rewriting.cancel()
            thread.join()
            rewriting.discard()
            self._rewriting = None
        if self._unwritten:
            with contextlib.suppress(OSError):
                self._append([])
        self._file.close()

    def _are_gone(self, numbers: Iterable[int]) -> None:
        gone = sum(self._waiting_bytes.pop(number, 0) for number in numbers)
        self._all_waiting_bytes -= gone
        self._dead_bytes += gone

    async def _written(self, records: list[Buffer], size: int) -> Written:
        """Write records; the file and the place where they are. Raises OSError."""
        if self._may_write_at_once(size):
            return self._append(records)
        done: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._hand_over(_Change(lambda: self._append(records), done))
        return await done

    def _note(self, record: list[Buffer]) -> None:
        """Write what nobody waits for; what cannot be written is tried again with whatever comes next."""
        if self._may_write_at_once(sum(map(len, record))):
            self._append_or_remember(record)
        else:
            self._hand_over(_Change(lambda: self._append_or_remember(record)))

    def _may_write_at_once(self, size: int) -> bool:
        """Not while the thread has work, for the file is one after the other's."""
        return size <= _AT_ONCE_BYTES and self._handed_over == self._done and time.monotonic() >= self._at_once_from

    def _hand_over(self, change: _Change) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
            self._thread.start()
        self._handed_over += 1
        self._changes.put(change)

    def _work(self) -> None:
        while (change := self._changes.get()) is not None:
            place, failure = None, None
            try:
                place = change.write()
            except OSError as error:
                failure = error
            self._done += 1
            if change.done is not None:
                change.done.get_loop().call_soon_threadsafe(_settle, change.done, place, failure)

    def _append_or_remember(self, record: list[Buffer]) -> None:
        try:
            self._append(record)
        except OSError:
            self._unwritten += record

    def _append(self, record: list[Buffer]) -> Written:
        """Write a record; the file and the place where it is. Raises OSError; then it is not in the file."""
        begin = time.monotonic()
        try:
            self._end_rewriting()
            if self._unwritten:
                self._file.append(self._unwritten)
                self._unwritten = []
            start = self._file.append(record)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            logger.error("the journal %s cannot be written: %s", self.path, self.trouble)
            raise
        finally:
            end = time.monotonic()
            if end - begin > self._long_write:
                self._at_once_from = end + (end - begin) * _LEFT_TO_THREAD
        self.trouble = ""
        return self._file.file, start

    def _rewrite_if_worthwhile(self) -> None:
        if self._rewriting is not None or self._dead_bytes < max(self._rewrite_after, self._file.size // 2):
            return
        self._dead_bytes = 0
        if self._may_write_at_once(0):
            self._begin_rewriting()
        else:  # what says that the groups are gone is not in the file before the thread's turn
            self._hand_over(_Change(self._begin_rewriting))

    def _begin_rewriting(self) -> None:
        if self._rewriting is None:
            rewriting = Rewriting(self._file)
            thread = threading.Thread(target=rewriting.run, name="journal-rewriting", daemon=True)
            self._rewriting = (rewriting, thread)
            thread.start()

    def _end_rewriting(self) -> None:
        """Take the new file, if there is one by now."""
        if self._rewriting is None or not self._rewriting[0].has_ended:
            return
        try:
            self._rewriting[0].finish()
        except (OSError, UsageError, BrokenRecordError) as error:
            logger.warning("the journal %s stays as large as it is: %s", self.path, error)
        self._rewriting = None


def _settle(done: asyncio.Future[Written], place: Written | None, failure: OSError | None) -> None:
    if done.done():
        return
    if failure is None and place is not None:
        done.set_result(place)
    elif failure is not None:
        done.set_exception(failure)
