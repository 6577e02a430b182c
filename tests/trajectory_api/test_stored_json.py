"""Texts kept deflated and joined into one gzip stream."""

from __future__ import annotations

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.trajectory_api.stored_json import StoredJson, gzip_of

TEXTS = st.lists(st.binary(max_size=300), max_size=6)


@given(TEXTS)
def test_joined_pieces_are_one_gzip_member_of_the_joined_texts(texts: list[bytes]) -> None:
    stored = [
        StoredJson.plain(text).deflate() if index % 2 else StoredJson.plain(text).in_plain_blocks()
        for index, text in enumerate(texts)
    ]
    stream = b"".join(gzip_of(stored))
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    assert inflater.decompress(stream) == b"".join(texts)
    assert inflater.eof
    assert inflater.unused_data == b""


@given(st.binary(max_size=300), st.binary(max_size=50))
def test_deflating_keeps_text_and_size_and_happens_once(text: bytes, rest: bytes) -> None:
    plain = StoredJson.plain(memoryview(text), rest)
    deflated = plain.deflate()
    assert plain.text() == deflated.text() == text + rest
    assert plain.size == deflated.size == len(text + rest)
    assert deflated.deflate() is deflated


def test_texts_longer_than_one_plain_block_are_split() -> None:
    text = bytes(range(256)) * 1000
    assert gzip.decompress(b"".join(gzip_of([StoredJson.plain(text).in_plain_blocks()]))) == text


def test_numbers_take_little_more_than_half_of_their_text_when_deflated() -> None:
    text = ("[" + ",".join(str(number * 7919 % 32_000) for number in range(5000)) + "]").encode()
    assert StoredJson.plain(text).deflate().stored_bytes < 0.6 * len(text)


@given(st.binary(max_size=300))
def test_a_gzip_member_of_one_text_is_that_text_again(text: bytes) -> None:
    deflated = StoredJson.plain(text).deflate()
    again = StoredJson.of_gzip(b"".join(gzip_of([deflated])))
    assert (again.text(), again.size, again.crc) == (text, deflated.size, deflated.crc)
    assert b"".join(gzip_of([again])) == b"".join(gzip_of([deflated]))
