"""The records of a journal file: how each is framed, and how they are read again."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson
from isal import isal_zlib

Buffer: TypeAlias = bytes | bytearray | memoryview

FILE_HEADER: Final = b"atropos-tui trajectory journal 2\n"
# The bytes of what the record tells, the bytes of its text, the check sum (CRC-32) of both; and before, that of these
# three, so that a length that is wrong isn't taken for a record that the end of a process tore.
_LENGTHS: Final = struct.Struct("<III")
_FRAME: Final = struct.Struct("<IIII")
_READ_AT_ONCE: Final = 1024 * 1024
# Enough for the frame and what most records tell.
_PEEK: Final = 1024


class BrokenRecordError(Exception):
    """There is no whole record at byte `at`; it is `torn` if the file ends inside it, as at the end of a process."""

    def __init__(self, at: int, torn: bool) -> None:
        self.at = at
        self.torn = torn
        super().__init__(f"no whole record at byte {at}")


@dataclass(frozen=True, slots=True)
class Record:
    """One record from byte `start` to `end`; its text begins at `text_start`. `about` tells its "kind" and the rest."""

    about: dict[str, Any]
    start: int
    text_start: int
    end: int

    def text(self, file: int) -> bytes:
        return read_exactly(file, self.text_start, self.end - self.text_start)


def framed(about: dict[str, Any], text: Sequence[Buffer] = ()) -> list[Buffer]:
    """The bytes of a record, in pieces."""
    told = orjson.dumps(about)
    crc = isal_zlib.crc32(told)
    for part in text:
        crc = isal_zlib.crc32(part, crc)
    lengths = _LENGTHS.pack(len(told), sum(map(len, text)), crc)
    return [isal_zlib.crc32(lengths).to_bytes(4, "little") + lengths + told, *text]


def records(file: int, start: int, end: int, *, verified: bool) -> Iterator[Record]:
    """The records between two places; with `verified` each text is read and checked too. Raises BrokenRecordError."""
    while start < end:
        record = _record_at(file, start, end, verified)
        yield record
        start = record.end


def _record_at(file: int, start: int, end: int, verified: bool) -> Record:
    beginning = os.pread(file, min(_PEEK, end - start), start)
    if len(beginning) < _FRAME.size:
        raise BrokenRecordError(start, torn=True)
    check, told_size, text_size, crc = _FRAME.unpack_from(beginning)
    if check != isal_zlib.crc32(beginning[4 : _FRAME.size]):
        raise BrokenRecordError(start, torn=False)
    text_start = start + _FRAME.size + told_size
    if text_start + text_size > end:
        raise BrokenRecordError(start, torn=True)
    told = beginning[_FRAME.size : _FRAME.size + told_size]
    if len(told) < told_size:
        told = read_exactly(file, start + _FRAME.size, told_size)
    if verified and crc != _crc_of(file, told, text_start, text_start + text_size):
        raise BrokenRecordError(start, torn=False)
    return Record(orjson.loads(told), start, text_start, text_start + text_size)


def _crc_of(file: int, told: bytes, text_start: int, end: int) -> int:
    crc = isal_zlib.crc32(told)
    for at in range(text_start, end, _READ_AT_ONCE):
        crc = isal_zlib.crc32(read_exactly(file, at, min(_READ_AT_ONCE, end - at)), crc)
    return crc


def read_exactly(file: int, start: int, size: int) -> bytes:
    """Raises OSError when the file is shorter."""
    pieces = []
    while size > 0:
        piece = os.pread(file, size, start)
        if not piece:
            raise OSError(f"the file ends at byte {start}")
        pieces.append(piece)
        start += len(piece)
        size -= len(piece)
    return b"".join(pieces)
