"""JSON texts kept deflated, and joined into one gzip stream without inflating or deflating anything again.

Each text is deflated on its own and ends on a byte boundary (a full flush), so the pieces of several texts, with
uncompressed blocks for what stands between them, follow each other in one valid stream (RFC 1951, 1952). The check sum
of the whole is computed from those of the parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from isal import isal_zlib

RAW_DEFLATE = -15
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_GZIP_END = b"\x01\x00\x00\xff\xff"
_LONGEST_PLAIN_BLOCK = 0xFFFF
_LEVEL = 1


class KeptJson(Protocol):
    """A text of `size` bytes, wherever and however it is kept; `stored_bytes` are those in memory."""

    @property
    def size(self) -> int: ...

    @property
    def stored_bytes(self) -> int: ...

    @property
    def deflated(self) -> bool: ...

    def text(self) -> bytes: ...

    def deflate(self) -> StoredJson: ...


@dataclass(frozen=True, slots=True)
class StoredJson:
    """A text of `size` bytes, as it is or, when `deflated`, as blocks of a raw deflate stream that is not ended.

    `parts` together are the one or the other; a text may be part of a larger one that need not be copied.
    """

    parts: tuple[bytes | memoryview, ...]
    size: int
    deflated: bool = False
    crc: int = 0

    @classmethod
    def plain(cls, *parts: bytes | memoryview) -> StoredJson:
        return cls(parts, sum(map(len, parts)))

    @classmethod
    def of_gzip(cls, member: bytes) -> StoredJson:
        """The text of what `gzip_of` made of one."""
        blocks = memoryview(member)[len(GZIP_HEADER) : -8 - len(_GZIP_END)]
        return cls((blocks,), int.from_bytes(member[-4:], "little"), True, int.from_bytes(member[-8:-4], "little"))

    @property
    def stored_bytes(self) -> int:
        return sum(map(len, self.parts))

    def text(self) -> bytes:
        data = b"".join(self.parts)
        return isal_zlib.decompressobj(RAW_DEFLATE).decompress(data) if self.deflated else data

    def deflate(self) -> StoredJson:
        if self.deflated:
            return self
        deflater = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, RAW_DEFLATE)
        crc, blocks = 0, []
        for part in self.parts:
            crc = isal_zlib.crc32(part, crc)
            blocks.append(deflater.compress(part))
        blocks.append(deflater.flush(isal_zlib.Z_FULL_FLUSH))
        return StoredJson((b"".join(blocks),), self.size, True, crc)

    def in_plain_blocks(self) -> StoredJson:
        """The deflated form of a short text, without any compression."""
        text = self.text()
        starts = range(0, self.size, _LONGEST_PLAIN_BLOCK)
        blocks = b"".join(_plain_block(text[start : start + _LONGEST_PLAIN_BLOCK]) for start in starts)
        return StoredJson((blocks,), self.size, True, isal_zlib.crc32(text))


NOTHING = StoredJson((), 0)


def gzip_of(texts: Iterable[StoredJson]) -> list[bytes | memoryview]:
    """The pieces of a gzip stream of the texts one after the other. All must be deflated."""
    pieces: list[bytes | memoryview] = [GZIP_HEADER]
    crc, size = 0, 0
    for text in texts:
        pieces += text.parts
        crc = isal_zlib.crc32_combine(crc, text.crc, text.size)
        size += text.size
    pieces.append(_GZIP_END + crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"))
    return pieces


def _plain_block(data: bytes) -> bytes:
    """One that is not the last of its stream."""
    length = len(data)
    return b"\x00" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little") + data
