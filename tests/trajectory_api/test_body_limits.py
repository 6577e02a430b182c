"""Bodies that are too large, damaged, or larger than they look."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from atropos_tui.trajectory_api.inflating import InvalidGzipError, inflate
from atropos_tui.trajectory_api.request_errors import RequestError
from tests.trajectory_api.bodies import group, mark_of
from tests.trajectory_api.conftest import Api

GZIP = {"content-encoding": "gzip"}
MEBIBYTE = 1024 * 1024


@pytest.fixture
def small(make_api: Callable[..., Api]) -> Api:
    """A server that takes bodies of at most 1 MiB."""
    return make_api(body_limit=MEBIBYTE)


@pytest.mark.parametrize(
    "body",
    [b"no gzip", gzip.compress(b"{}")[:-6], gzip.compress(b"{}")[:12], b"\x1f\x8b"],
    ids=["not gzip", "without its end", "without its body", "two bytes"],
)
async def test_damaged_gzip_is_400_with_upstreams_words(api: Api, body: bytes) -> None:
    response = await api.post("/scored_data", content=body, headers=GZIP)
    assert (response.status_code, response.text) == (400, "Invalid gzip payload")


@pytest.mark.parametrize("zeros", [2 * MEBIBYTE, 200 * MEBIBYTE])
async def test_a_gzip_bomb_is_refused_before_it_takes_memory(small: Api, zeros: int) -> None:
    bomb = _bomb(zeros)
    tracemalloc.start()
    try:
        response = await small.post("/scored_data", content=bomb, headers=GZIP)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.status_code == 413
    assert "1,048,576 bytes" in response.json()["detail"]
    assert peak < 10 * MEBIBYTE


async def test_a_body_that_is_too_large_is_refused_by_its_announced_length(small: Api) -> None:
    assert (await small.post("/scored_data", content=b" " * (MEBIBYTE + 1))).status_code == 413


async def test_a_body_that_is_too_large_is_refused_without_an_announced_length(small: Api) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * (MEBIBYTE // 10)

    assert (await small.post("/scored_data", content=chunks())).status_code == 413


@pytest.mark.parametrize("path", ["/register", "/register-env", "/disconnect-env", "/status-env"])
@pytest.mark.parametrize("gzipped", [False, True])
async def test_a_registration_is_small(api: Api, path: str, gzipped: bool) -> None:
    """It is read on the event loop."""
    body = json.dumps({"desired_name": "x" * 2_000_000}).encode()
    headers = {"content-encoding": "gzip"} if gzipped else {}
    content = gzip.compress(body) if gzipped else body
    method = "GET" if path == "/status-env" else "POST"
    assert (await api.request(method, path, content=content, headers=headers)).status_code == 413


async def test_other_encodings_than_gzip_are_refused(api: Api) -> None:
    response = await api.post("/scored_data", content=b"x", headers={"content-encoding": "br"})
    assert response.status_code == 415
    assert "use gzip" in response.json()["detail"]


@pytest.mark.parametrize("gzipped", [True, False])
async def test_large_bodies_are_taken_like_small_ones(api: Api, gzipped: bool) -> None:
    await api.start_run(batch_size=4)
    body = json.dumps(group(4, mark=3, images="x" * MEBIBYTE)).encode()
    content, headers = (gzip.compress(body), GZIP) if gzipped else (body, {})
    assert (await api.post("/scored_data", content=content, headers=headers)).json() == {"status": "received"}
    (received,) = (await api.get("/batch")).json()["batch"]
    assert mark_of(received) == 3
    assert received["images"] == "x" * MEBIBYTE


def test_gzip_of_several_members_is_inflated_whole() -> None:
    assert inflate(gzip.compress(b"a") + gzip.compress(b"bc"), 3) == b"abc"
    with pytest.raises(RequestError, match="larger than 2 bytes"):
        inflate(gzip.compress(b"a") + gzip.compress(b"bc"), 2)


def test_what_follows_a_gzip_member_must_be_one() -> None:
    with pytest.raises(InvalidGzipError):
        inflate(gzip.compress(b"a") + b"rest", 100)


def _bomb(zeros: int) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    chunk = bytes(MEBIBYTE)
    return b"".join(deflater.compress(chunk) for _ in range(zeros // MEBIBYTE)) + deflater.flush()
