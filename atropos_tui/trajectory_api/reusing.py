"""The compressed bytes that a group came in, used on: they take less memory than its text, and less time to get it.

Our environments send one gzip member whose last block is a short uncompressed one; all before it ends on a byte
boundary. So the stored form of the group is those blocks as they came, with another last one, and it is never deflated
here. Any other gzip body is kept as it is until there is time to bring its text into that form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from isal import isal_zlib

from atropos_tui.trajectory_api.group import ScoredGroup
from atropos_tui.trajectory_api.http import Body
from atropos_tui.trajectory_api.inflating import inflate
from atropos_tui.trajectory_api.stored_json import GZIP_HEADER, RAW_DEFLATE, KeptJson, StoredJson

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
        parts = parts_within(self.text, group.json)
        if parts is None or len(parts[0]) < self.opened_size:
            return group
        rest = b"".join((parts[0][self.opened_size :], *parts[1:]))
        last = StoredJson.plain(rest).in_plain_blocks().parts
        # What looks like the end of a block may be the middle of one; then whatever follows reads as something else.
        if self.inflater.decompress(b"".join(last)) != rest:
            return group
        crc = isal_zlib.crc32(rest, self.opened_crc)
        return replace(group, json=StoredJson((self.blocks, *last), group.json.size, True, crc))


@dataclass(frozen=True, slots=True)
class GzippedJson:
    """A text kept as the gzip body that it came in: the first `opened_size` of its `text_size` bytes, and a rest."""

    body: Body
    text_size: int
    opened_size: int
    rest: bytes
    deflated: ClassVar[bool] = False

    @classmethod
    def as_it_came(cls, body: Body, text: bytes, group: ScoredGroup) -> ScoredGroup:
        """The group with its text as the body, for one whose text begins with the body's; any other as it is."""
        parts = parts_within(text, group.json)
        if parts is None:
            return group
        json = cls(body, len(text), len(parts[0]), b"".join(parts[1:]))
        return ScoredGroup(json, group.env_id, group.sequences, group.tokens, group.scores)

    @property
    def size(self) -> int:
        return self.opened_size + len(self.rest)

    @property
    def stored_bytes(self) -> int:
        return len(self.body) + len(self.rest)

    def text(self) -> bytes:
        return inflate(self.body, self.text_size)[: self.opened_size] + self.rest

    def deflate(self) -> StoredJson:
        return StoredJson.plain(self.text()).deflate()


def parts_within(text: bytes, json: KeptJson) -> tuple[bytes | memoryview, ...] | None:
    """The parts of a text of which the first is a part of a larger one that it begins with; None for all others."""
    if not isinstance(json, StoredJson) or json.deflated:
        return None
    beginning = json.parts[0]
    return json.parts if isinstance(beginning, memoryview) and beginning.obj is text else None


def split_body(body: Body, limit: int) -> SplitBody | None:
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
