"""What comes over a connection is read the same however it is cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.trajectory_api.http import Answer, Request
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.serving.request_reader import MalformedRequestError, Received, RequestReader

LIMIT = 100_000
FORBIDDEN = Answer(b"no", 403)


class Door:
    """Refuses one path by its head."""

    body_limit = LIMIT

    def refusal(self, head: Request) -> Answer | None:
        return FORBIDDEN if head.path == "/forbidden" else None

    def refused(self, error: RequestError) -> Answer:
        return Answer(str(error).encode(), error.status)

    async def answer(self, request: Request) -> Answer:
        raise AssertionError(request)


@dataclass(frozen=True)
class Sent:
    """A request as bytes, and what must be read of it."""

    path: str
    body: bytes
    chunked: bool

    @property
    def wire(self) -> bytes:
        head = f"POST {self.path}?a=1 HTTP/1.1\r\nHost: x\r\nX-Mark: {len(self.body)}\r\n".encode()
        if not self.chunked:
            return head + b"Content-Length: %d\r\n\r\n%s" % (len(self.body), self.body)
        pieces = [self.body[at : at + 7] for at in range(0, len(self.body), 7)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


SENT = st.lists(
    st.builds(
        Sent,
        st.sampled_from(["/scored_data", "/forbidden", "/a%20b"]),
        st.binary(max_size=200) | st.integers(1000, 40_000).map(lambda size: bytes(size % 251 for _ in range(size))),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def feed(reader: RequestReader, wire: bytes, cuts: list[int]) -> list[Received]:
    """Everything that the reader makes of bytes that come in pieces of these sizes, the last size again and again."""
    at = index = 0
    while at < len(wire):
        buffer = reader.buffer()
        size = min(cuts[min(index, len(cuts) - 1)], len(buffer), len(wire) - at)
        buffer[:size] = wire[at : at + size]
        reader.received(size)
        at, index = at + size, index + 1
    return list(reader.complete)


@given(sent=SENT, cuts=st.lists(st.integers(1, 30_000), min_size=1, max_size=8))
def test_requests_are_the_same_however_they_are_cut(sent: list[Sent], cuts: list[int]) -> None:
    reader = RequestReader(Door())
    found = feed(reader, b"".join(request.wire for request in sent), cuts)
    assert len(found) == len(sent)
    for request, received in zip(sent, found, strict=True):
        forbidden = request.path == "/forbidden"
        assert received.refusal is (FORBIDDEN if forbidden else None)
        assert received.keep_alive
        assert received.request.path == request.path.replace("%20", " ")
        assert received.request.query == b"a=1"
        assert received.request.headers[b"x-mark"] == b"%d" % len(request.body)
        assert bytes(received.request.body) == (b"" if forbidden else request.body)


@pytest.mark.parametrize("cut", [1, 100, 16_384])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_above_the_limit_is_refused_and_skipped(chunked: bool, cut: int) -> None:
    large, next_one = Sent("/scored_data", b"x" * (LIMIT + 1), chunked), Sent("/scored_data", b"next", False)
    found = feed(RequestReader(Door()), large.wire + next_one.wire, [cut])
    assert [received.refusal.status if received.refusal else 200 for received in found] == [413, 200]
    assert found[1].request.body == b"next"


@pytest.mark.parametrize(
    "wire",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET http://[/ HTTP/1.1\r\n\r\n",
    ],
    ids=["words", "no colon", "two lengths", "negative length", "TLS", "bad address"],
)
def test_what_is_no_http_is_refused(wire: bytes) -> None:
    with pytest.raises(MalformedRequestError) as refused:
        feed(RequestReader(Door()), wire, [1000])
    assert refused.value.status == 400


def test_a_head_that_never_ends_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="more than 65,536 bytes") as refused:
        feed(RequestReader(Door()), b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000, [4000])
    assert refused.value.status == 431


def test_heads_of_many_requests_are_not_added_up() -> None:
    wire = b"GET /status HTTP/1.1\r\nx: " + b"y" * 30_000 + b"\r\n\r\n"
    assert len(feed(RequestReader(Door()), wire * 5, [16_000])) == 5


def test_memory_for_a_body_is_not_taken_because_it_is_announced() -> None:
    door = Door()
    door.body_limit = 2**40
    reader = RequestReader(door)
    feed(reader, b"POST / HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n", [1000])
    assert len(reader.buffer()) <= 16 * 1024 * 1024


def test_a_body_larger_than_what_is_taken_at_once_grows_to_its_length() -> None:
    door = Door()
    door.body_limit = 2**30
    body = bytes(range(256)) * (150 * 1024)
    (received,) = feed(RequestReader(door), Sent("/", body, False).wire, [1_000_003])
    assert received.request.body == body


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [("HTTP/1.1\r\n", True), ("HTTP/1.1\r\nConnection: close\r\n", False), ("HTTP/1.0\r\n", False),
     ("HTTP/1.0\r\nConnection: keep-alive\r\n", True)],
)  # fmt: skip
def test_the_client_says_whether_the_connection_stays(head: str, keep_alive: bool) -> None:
    (received,) = feed(RequestReader(Door()), f"GET / {head}\r\n".encode(), [1000])
    assert received.keep_alive is keep_alive


def test_a_client_that_waits_for_leave_is_given_it_unless_it_is_refused() -> None:
    expecting = "POST {} HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    reader = RequestReader(Door())
    feed(reader, expecting.format("/").encode(), [1000])
    assert reader.awaits_continue
    refusing = RequestReader(Door())
    (received,) = feed(refusing, expecting.format("/forbidden").encode(), [1000])
    assert received.refusal is FORBIDDEN
    assert not received.keep_alive
    assert not refusing.awaits_continue


def test_a_body_that_came_with_its_head_needs_no_leave() -> None:
    """Leave that is given after the answer would be taken for the answer to the next request."""
    reader = RequestReader(Door())
    feed(reader, b"POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello", [1000])
    assert not reader.awaits_continue


@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_a_body_that_comes_with_the_offer_of_another_protocol_is_read(body: bytes, cuts: list[int]) -> None:
    """Java's client makes that offer with every first request."""
    head = b"POST /scored_data HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    wire = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    found = feed(RequestReader(Door()), wire + wire + b"GET /status HTTP/1.1\r\n\r\n", cuts)
    assert [(received.request.path, bytes(received.request.body)) for received in found] == [
        ("/scored_data", body), ("/scored_data", body), ("/status", b""),
    ]  # fmt: skip


def test_what_is_no_http_is_refused_behind_the_offer_of_another_protocol_too() -> None:
    offer = b"GET /status HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    with pytest.raises(MalformedRequestError):
        feed(RequestReader(Door()), offer + b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", [1000])


@pytest.mark.parametrize("path", ["/scored_data", "/forbidden"])
@pytest.mark.parametrize(
    "flood", [b"1;" + b"x" * 999_999, b"0\r\n" + b"a: b\r\n" * 99_999], ids=["of an extension", "of headers"]
)
def test_what_stands_between_the_chunks_of_a_body_is_bounded(path: str, flood: bytes) -> None:
    head = f"POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with pytest.raises(MalformedRequestError) as refused:
        feed(RequestReader(Door()), head + flood, [1000])
    assert refused.value.status == 431


def test_headers_behind_a_chunked_body_change_nothing() -> None:
    head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nIdempotency-Key: a\r\n\r\n"
    (received,) = feed(RequestReader(Door()), head + b"1\r\nx\r\n0\r\nIdempotency-Key: b\r\n\r\n", [7])
    assert received.request.headers[b"idempotency-key"] == b"a"


def test_an_offer_of_another_protocol_is_not_taken() -> None:
    """As Java's client makes it with its first request."""
    offer = b"GET /info HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n\r\n"
    found = feed(RequestReader(Door()), offer + b"GET /status HTTP/1.1\r\n\r\n", [1000])
    assert [received.request.path for received in found] == ["/info", "/status"]
