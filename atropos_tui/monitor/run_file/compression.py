"""Compressed bytes that say by their first byte how they were compressed."""

from __future__ import annotations

import zlib

try:
    import zstandard
except ImportError:  # not built for every platform; files written with it then cannot be read here
    zstandard = None  # type: ignore[assignment]

_ZLIB, _ZSTD = b"z", b"s"
_ZLIB_LEVEL = 1
_ZSTD_LEVEL = 1  # of token arrays it makes a thirtieth more than level 3, in a third of the time


class Compressor:
    """Compresses with zstd where it is there, else with zlib. For one thread."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=_ZSTD_LEVEL) if zstandard is not None else None

    def compress(self, data: bytes) -> bytes:
        if self._zstd is not None:
            return _ZSTD + self._zstd.compress(data)
        return _ZLIB + zlib.compress(data, _ZLIB_LEVEL)


def decompress(data: bytes) -> bytes:
    """Raises ValueError for bytes that were not written by a `Compressor`, or that need zstd where there is none."""
    kind, body = data[:1], data[1:]
    if kind == _ZLIB:
        return zlib.decompress(body)
    if kind != _ZSTD:
        raise ValueError(f"compressed in an unknown way: {kind!r}")
    if zstandard is None:
        raise ValueError("compressed with zstd: install the package `zstandard` to read it")
    return zstandard.ZstdDecompressor().decompress(body)
