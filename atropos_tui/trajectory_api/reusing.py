"""The deflate blocks that a group came in, used on: a group from one of our environments is never deflated here.

Our environments send one gzip member whose last block is a short uncompressed one; all before it ends on a byte
boundary. So the stored form of the group is those blocks as they came, with another last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from isal import isal_zlib

from atropos_tui.trajectory_api.group import ScoredGroup
from atropos_tui.trajectory_api.stored_json import GZIP_HEADER, RAW_DEFLATE, StoredJson

_LONGEST_LAST_BLOCK = 256
_BLOCK_HEADER = 5
_TRAILER = 8


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A gzip body as its text and the blocks that make the first `opened_size` bytes of it.

    `inflater` has read those blocks.
    """

    text: bytes
    blocks: memoryview
    opened_size: int
    opened_crc: int
    inflater: Any

    def keep_blocks(self, group: ScoredGroup) -> ScoredGroup:
        """The group with its text deflated, for one whose text begins with the body's; any other as it is."""
        beginning = group.json.parts[0]
        if not (
            isinstance(beginning, memoryview) and beginning.obj is self.text and len(beginning) >= self.opened_size
        ):
            return group
        rest = b"".join((beginning[self.opened_size :], *group.json.parts[1:]))
        last = StoredJson.plain(rest).in_plain_blocks().parts
        # What looks like the end of a block may be the middle of one; then whatever follows reads as something else.
        if self.inflater.decompress(b"".join(last)) != rest:
            return group
        crc = isal_zlib.crc32(rest, self.opened_crc)
        return replace(group, json=StoredJson((self.blocks, *last), group.json.size, True, crc))


def split_body(body: bytes, limit: int) -> SplitBody | None:
    """The body of one of our environments; None for any other, a damaged one, or more than `limit` bytes of text."""
    end = len(body) - _TRAILER
    start = body.rfind(b"\x00\x00\xff\xff\x01", max(0, end - _BLOCK_HEADER - _LONGEST_LAST_BLOCK)) + 4
    length = int.from_bytes(body[start + 1 : start + 3], "little")
    if not body.startswith(GZIP_HEADER) or start < len(GZIP_HEADER) or start + _BLOCK_HEADER + length != end:
        return None
    blocks = memoryview(body)[len(GZIP_HEADER) : start]
    inflater = isal_zlib.decompressobj(RAW_DEFLATE)
    try:
        opened = inflater.decompress(blocks, limit + 1)
    except isal_zlib.IsalError:  # type: ignore[misc]  # an instance, its stub says
        return None
    last = body[start + _BLOCK_HEADER : end]
    opened_crc = isal_zlib.crc32(opened)
    told_crc = int.from_bytes(body[end : end + 4], "little")
    if len(opened) + len(last) > limit or isal_zlib.crc32(last, opened_crc) != told_crc:
        return None
    return SplitBody(opened + last, blocks, len(opened), opened_crc, inflater)
