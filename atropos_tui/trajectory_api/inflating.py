"""Compressed request bodies: gzip only, and never more of it than allowed."""

from __future__ import annotations

from isal import isal_zlib

from atropos_tui.trajectory_api.http import Body, too_large
from atropos_tui.trajectory_api.request_errors import RequestError

_GZIP = isal_zlib.MAX_WBITS | 16


class InvalidGzipError(RequestError):
    """Answered as upstream does: 400 with a plain text."""

    def __init__(self) -> None:
        super().__init__(400, "Invalid gzip payload")


def inflate(body: Body, limit: int) -> bytes:
    """All members of a gzip body. Raises InvalidGzipError, and RequestError (413) at more than `limit` bytes."""
    texts: list[bytes] = []
    size = 0
    while body:
        inflater = isal_zlib.decompressobj(_GZIP)
        try:
            text = inflater.decompress(body, limit - size + 1)
        except isal_zlib.IsalError as error:  # type: ignore[misc]  # an instance, its stub says
            raise InvalidGzipError from error
        size += len(text)
        if size > limit:
            raise too_large(limit)
        if not inflater.eof:
            raise InvalidGzipError
        texts.append(text)
        body = inflater.unused_data
    return b"".join(texts)
