"""The journal's file: one server has it, records are put at its end whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.journal.contents import Contents
from atropos_tui.trajectory_api.journal.held_file import HeldFile
from atropos_tui.trajectory_api.journal.records import (
    FILE_HEADER,
    BrokenRecordError,
    Buffer,
    Record,
    read_exactly,
    records,
)

# Room on the disk is taken in such steps: to find it for each record would take as long as to copy the record.
_ROOM_AT_ONCE: Final = 4 * 1024 * 1024
_KEEP_SIZE: Final = 1
# The most pieces that one system call takes (IOV_MAX).
_PIECES_AT_ONCE: Final = 1024

logger = logging.getLogger(__name__)


def _libc_fallocate() -> Any:
    """Linux's `fallocate`, which leaves the file's size as it is; None elsewhere."""
    found = getattr(ctypes.CDLL(None), "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return found


_fallocate: Final = _libc_fallocate()


class LogFile:
    """An open file, locked for this process. `size` counts the bytes of whole records and of the header before them."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises UsageError when it is no journal, is in use, or cannot be used."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = _opened(path)
            self._room: float = 0
            try:
                self.size = self._checked_header()
            except BaseException:
                self.file.close()
                raise
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error

    @property
    def descriptor(self) -> int:
        return self.file.descriptor

    def contents(self) -> Contents:
        """What the records say. A record that is not whole ends them; it and what follows leave the file.

        What the end of a process tore has told nobody that it was kept; anything else is put aside. Raises UsageError.
        """
        found: list[Record] = []
        end = os.fstat(self.descriptor).st_size
        try:
            for record in records(self.descriptor, self.size, end, verified=True):
                found.append(record)
                self.size = record.end
        except BrokenRecordError as broken:
            try:
                if not broken.torn:
                    self._put_aside(broken.at, end)
                os.ftruncate(self.descriptor, broken.at)
            except OSError as error:
                raise _unusable(self.path, error.strerror or str(error)) from error
        return Contents.of(found)

    def append(self, pieces: Sequence[Buffer]) -> int:
        """Put records at the end; the place of the first. Raises OSError; then none of them is there."""
        begin, size = self.size, sum(map(len, pieces))
        if begin + size > self._room:
            self._take_room(size)
        try:
            _write(self.descriptor, pieces, begin, size)
        except OSError:
            os.ftruncate(self.descriptor, self.size)
            raise
        self.size = begin + size
        return begin

    def take_over(self, other: LogFile) -> None:
        """Become the other file, which has taken this one's place; who still reads this one holds it."""
        self.file, self.size, self._room = other.file, other.size, other._room

    def close(self) -> None:
        """Give back the room that no record needed. May be called again."""
        if not self.file.is_closed:
            if self._room:
                with contextlib.suppress(OSError):
                    os.ftruncate(self.descriptor, self.size)
            self.file.close()

    def _take_room(self, size: int) -> None:
        """Have blocks for so many more bytes. Where that cannot be, the records take them as they come."""
        ahead = size + _ROOM_AT_ONCE
        taken = _fallocate is not None and _fallocate(self.descriptor, _KEEP_SIZE, self.size, ahead) == 0
        self._room = self.size + ahead if taken else math.inf

    def _checked_header(self) -> int:
        """The place behind the header, which an empty file gets. Raises UsageError for another one, and OSError."""
        if not stat.S_ISREG(os.fstat(self.descriptor).st_mode):
            raise _unusable(self.path, "it is no regular file, so that nothing could be read from it again")
        beginning = os.pread(self.descriptor, len(FILE_HEADER), 0)
        if beginning != FILE_HEADER and not FILE_HEADER.startswith(beginning):
            raise _unusable(self.path, "it holds something else than a journal of this version")
        if beginning != FILE_HEADER:
            os.pwrite(self.descriptor, FILE_HEADER, 0)
        return len(FILE_HEADER)

    def _put_aside(self, start: int, end: int) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        with aside.open("ab") as file:
            file.write(read_exactly(self.descriptor, start, end - start))
        logger.error(
            "the journal %s is damaged at byte %d; what follows is in %s and its groups are lost to this run",
            self.path, start, aside,
        )  # fmt: skip


def _opened(path: Path) -> HeldFile:
    """The file that is at the path now, locked. Raises UsageError when another process has it, and OSError."""
    while True:
        file = HeldFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        try:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The former owner may have put another file in its place between the two calls.
            if os.fstat(file.descriptor).st_ino == path.stat().st_ino:
                return file
            file.close()
        except BlockingIOError as error:
            file.close()
            raise UsageError(
                f"cannot use the journal {path}: it is locked",
                "give another --journal PATH, or end the server that uses it",
            ) from error
        except BaseException:
            file.close()
            raise


def _unusable(path: Path, reason: str) -> UsageError:
    return UsageError(f"cannot use the journal {path}: {reason}", "give another --journal PATH")


def _write(descriptor: int, pieces: Sequence[Buffer], at: int, size: int) -> None:
    """Write all pieces, `size` bytes, at a place. Raises OSError."""
    written = os.pwritev(descriptor, pieces[:_PIECES_AT_ONCE], at)
    if written < size:
        # There are more than one call takes, or the disk is getting full: it takes a part first, and then says why.
        rest = memoryview(b"".join(pieces))[written:]
        while rest:
            written = os.pwrite(descriptor, rest, at + size - len(rest))
            rest = rest[written:]
