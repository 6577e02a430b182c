"""The deflate blocks that a group came in, used on."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.runtime.encoding import encode_group
from atropos_tui.trajectory_api.group import ScoredGroup, ScoreSummary
from atropos_tui.trajectory_api.reusing import GzippedJson, split_body
from atropos_tui.trajectory_api.stored_json import GZIP_HEADER, StoredJson, gzip_of
from tests.trajectory_api.bodies import GROUP_KEYS, group, read_group
from tests.trajectory_api.conftest import Api

LIMIT = 1_000_000
ROWS = [[sequence * 997 + position * 7 for position in range(500)] for sequence in range(4)]
LARGE = group(4, tokens=ROWS, masks=ROWS, images=None, overrides=None, env_id=None)


def encoded(body: dict[str, Any], env_id: int | None = 7) -> bytes:
    """As an environment of ours sends it."""
    wire = encode_group({name: value for name, value in body.items() if name != "env_id"}).with_env_id(env_id)
    assert wire.startswith(GZIP_HEADER)
    return wire


def member(beginning: bytes, flush: int, end: bytes, check: bytes | None = None) -> bytes:
    """A gzip member that ends with a plain block of `end`."""
    deflater = zlib.compressobj(1, zlib.DEFLATED, -15)
    blocks = deflater.compress(beginning) + deflater.flush(flush)
    last = struct.pack("<BHH", 1, len(end), len(end) ^ 0xFFFF) + end
    text = beginning + end if check is None else check
    return GZIP_HEADER + blocks + last + struct.pack("<II", zlib.crc32(text), len(text))


def kept(body: bytes) -> ScoredGroup:
    split = split_body(body, LIMIT)
    assert split is not None
    (scored,) = read_group(split.text)
    return split.keep_blocks(scored)


@pytest.mark.parametrize("left_out", [(), ("images", "overrides")])
def test_a_group_of_ours_is_kept_in_the_blocks_that_it_came_in(left_out: tuple[str, ...]) -> None:
    sent = {name: value for name, value in LARGE.items() if name not in left_out}
    body = encoded(sent)
    stored = kept(body).json
    assert stored.deflated
    assert bytes(stored.parts[0]) in body
    wanted = {**LARGE, "env_id": 7}
    assert json.loads(stored.text()).items() >= wanted.items()
    assert json.loads(gzip.decompress(b"".join(gzip_of([stored])))).items() >= wanted.items()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        GZIP_HEADER,
        gzip.compress(json.dumps(LARGE).encode()),
        encoded(LARGE)[:-1],
        encoded(LARGE) + b"x",
        b"\x1f\x8b\x08\x08" + encoded(LARGE)[4:],
        member(b"abc", zlib.Z_FULL_FLUSH, b"d", check=b"abcx"),
        GZIP_HEADER + b"\xff" * 20 + b"\x00\x00\xff\xff\x01\x01\x00\xfe\xffd" + bytes(8),
    ],
    ids=["nothing", "a header", "upstream's", "cut", "more", "with a name", "wrong check sum", "no deflate"],
)
def test_any_other_body_is_left_to_the_inflater(body: bytes) -> None:
    assert split_body(body, LIMIT) is None


def test_a_body_that_inflates_to_more_than_the_limit_is_left_to_the_inflater() -> None:
    body = encoded(LARGE)
    size = len(gzip.decompress(body))
    assert split_body(body, size) is not None
    assert split_body(body, size - 1) is None


@given(st.binary(max_size=40))
def test_what_only_looks_like_the_end_of_a_block_is_not_used(noise: bytes) -> None:
    """A plain block can hold the very bytes that mark the end of one."""
    opened = b'{"a":' + b"\x00\x00\xff\xff"
    inside = opened + struct.pack("<BHH", 1, len(noise), len(noise) ^ 0xFFFF) + noise
    block = struct.pack("<BHH", 1, len(inside), len(inside) ^ 0xFFFF) + inside
    split = split_body(GZIP_HEADER + block + struct.pack("<II", zlib.crc32(opened + noise), 0), LIMIT)
    assert split is not None
    scored = ScoredGroup(StoredJson.plain(memoryview(split.text), b"}"), None, 1, 1, ScoreSummary(0, 0, 0, 0))
    assert split.keep_blocks(scored) is scored


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("spaces", ["", " \n"])
def test_a_group_of_upstreams_is_kept_as_it_came_until_it_is_deflated(members: int, spaces: str) -> None:
    text = (json.dumps(LARGE) + spaces).encode()
    cuts = [len(text) * member // members for member in range(members + 1)]
    body = b"".join(gzip.compress(text[start:end]) for start, end in pairwise(cuts))
    (scored,) = read_group(text)
    came = GzippedJson.as_it_came(body, text, scored).json
    assert isinstance(came, GzippedJson)
    assert came.body is body
    assert came.stored_bytes < 0.6 * len(text)
    for kept_text in (came.text(), came.deflate().text()):
        assert kept_text == scored.json.text()
    assert came.size == scored.json.size
    assert json.loads(came.text()).keys() == GROUP_KEYS


def test_a_group_that_was_written_anew_is_kept_as_that() -> None:
    text = json.dumps({**LARGE, "scores": ["1", "0", "0", "0"]}).encode()
    (scored,) = read_group(text)
    assert GzippedJson.as_it_came(gzip.compress(text), text, scored) is scored


async def test_groups_sent_by_ours_and_by_upstream_come_out_in_one_batch(api: Api) -> None:
    await api.start_run(batch_size=12)
    bodies = [encoded(LARGE, None), gzip.compress(json.dumps(LARGE).encode()), encoded(LARGE, None)]
    for body in bodies:
        answer = await api.post("/scored_data", content=body, headers={"content-encoding": "gzip"})
        assert answer.json() == {"status": "received"}
    batch = (await api.get("/batch")).json()["batch"]
    assert [found["tokens"] for found in batch] == [LARGE["tokens"]] * 3
    assert all(len(found) == 14 for found in batch)
