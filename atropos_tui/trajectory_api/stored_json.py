"""JSON texts kept deflated, and joined into one gzip stream without inflating or deflating anything again.

Each text is deflated on its own and ends on a byte boundary (a full flush), so the pieces of several texts, with
uncompressed blocks for what stands between them, follow each other in one valid stream (RFC 1951, 1952). The check sum
of the whole is computed from those of the parts: CRC-32 is linear, crc(a + b) = crc(a)·x^(8·len b) + crc(b) in GF(2).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_CRC_POLYNOMIAL = 0xEDB88320
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LONGEST_PLAIN_BLOCK = 0xFFFF


@dataclass(frozen=True, slots=True)
class StoredJson:
    """A text of `size` bytes, as it is or, when `deflated`, as blocks of a raw deflate stream that is not ended.

    `parts` together are the one or the other; a text may be part of a larger one that need not be copied.
    """

    parts: tuple[bytes | memoryview, ...]
    size: int
    deflated: bool = False
    crc: int = 0
    crc_shift: int = 0

    @classmethod
    def plain(cls, *parts: bytes | memoryview) -> StoredJson:
        return cls(parts, sum(map(len, parts)))

    @property
    def stored_bytes(self) -> int:
        return sum(map(len, self.parts))

    def text(self) -> bytes:
        data = b"".join(self.parts)
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data) if self.deflated else data

    def deflate(self, *, hurried: bool = False) -> StoredJson:
        """The deflated form; `hurried` gives up about a fifth of the saving for two thirds of the time."""
        if self.deflated:
            return self
        strategy = zlib.Z_HUFFMAN_ONLY if hurried else zlib.Z_DEFAULT_STRATEGY
        deflater = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy)
        crc, blocks = 0, []
        for part in self.parts:
            crc = zlib.crc32(part, crc)
            blocks.append(deflater.compress(part))
        blocks.append(deflater.flush(zlib.Z_FULL_FLUSH))
        return StoredJson((b"".join(blocks),), self.size, True, crc, _power_of_x(8 * self.size))

    def in_plain_blocks(self) -> StoredJson:
        """The deflated form of a short text, without any compression."""
        text = self.text()
        starts = range(0, self.size, _LONGEST_PLAIN_BLOCK)
        blocks = b"".join(_plain_block(text[start : start + _LONGEST_PLAIN_BLOCK]) for start in starts)
        return StoredJson((blocks,), self.size, True, zlib.crc32(text), _power_of_x(8 * self.size))


NOTHING = StoredJson((), 0)


def gzip_of(texts: Iterable[StoredJson]) -> list[bytes | memoryview]:
    """The pieces of a gzip stream of the texts one after the other. All must be deflated."""
    pieces: list[bytes | memoryview] = [_GZIP_HEADER]
    crc, size = 0, 0
    for text in texts:
        pieces += text.parts
        crc = _multiply(crc, text.crc_shift) ^ text.crc
        size += text.size
    pieces.append(_plain_block(b"", last=True) + crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"))
    return pieces


def _plain_block(data: bytes, *, last: bool = False) -> bytes:
    length = len(data)
    return bytes([last]) + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little") + data


def _multiply(a: int, b: int) -> int:
    """a·b modulo the CRC's polynomial; bit 31 is x^0, as CRC-32 has its bits reversed."""
    product = 0
    while a:
        if a & 0x80000000:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ _CRC_POLYNOMIAL if b & 1 else b >> 1
    return product


@lru_cache(maxsize=4096)
def _power_of_x(exponent: int) -> int:
    """x^exponent modulo the CRC's polynomial."""
    power, square = 0x80000000, 0x40000000
    while exponent:
        if exponent & 1:
            power = _multiply(square, power)
        square = _multiply(square, square)
        exponent >>= 1
    return power
