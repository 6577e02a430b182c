"""The small HTTP client of the control API, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from atropos_tui.monitor.http_connection import Answer, BrokenAnswerError, HttpConnection

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4;x=y\r\ntwo!\r\n0\r\n\r\n"


def answering(*answers: bytes, then_close: bool = False) -> tuple[Serve, list[bytes]]:
    """A server that gives these answers one after the other, whoever asks; and what it was asked."""
    asked: list[bytes] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while left:
                asked.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(left.pop(0))
                await writer.drain()
                if then_close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    return serve, asked


@asynccontextmanager
async def connected(path: Path, serve: Serve, *, silence_limit: float = 60.0) -> AsyncIterator[HttpConnection]:
    server = await asyncio.start_unix_server(serve, path)
    connection = HttpConnection(str(path), "secret", silence_limit=silence_limit)
    try:
        yield connection
    finally:
        connection.close()
        server.close()


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "s"


async def test_answers_whole_and_in_parts_come_over_one_connection(socket: Path) -> None:
    serve, asked = answering(WHOLE, CHUNKED, WHOLE)
    async with connected(socket, serve) as http:
        assert await http.request("GET", "/a?b=c") == Answer(200, b"hello")
        assert await http.request("POST", "/d") == Answer(200, b"onetwo!")
        assert await http.request("GET", "/e") == Answer(200, b"hello")
    assert [line.split(b"\r\n")[0] for line in asked] == [
        b"GET /a?b=c HTTP/1.1", b"POST /d HTTP/1.1", b"GET /e HTTP/1.1"
    ]  # fmt: skip
    assert all(b"authorization: Bearer secret\r\n" in head for head in asked)


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_a_connection_that_ended_meanwhile_is_opened_again(socket: Path, how: str) -> None:
    asked: list[bytes] = []

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(WHOLE)
        await writer.drain()
        writer.close() if how == "close" else writer.transport.abort()

    async with connected(socket, answer_once) as http:
        for method in ("GET", "GET", "POST", "GET"):
            assert (await http.request(method, "/")).body == b"hello"
    assert len(asked) == 4


async def test_what_may_change_something_is_never_asked_twice(socket: Path) -> None:
    serve, asked = answering(WHOLE, b"", WHOLE)
    async with connected(socket, serve, silence_limit=0.2) as http:
        await http.request("GET", "/")
        with pytest.raises(OSError):
            await http.request("POST", "/stop")
    assert [head.split()[0] for head in asked] == [b"GET", b"POST"]


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello", b"no\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n", b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "no HTTP", "no length", "no status", "endless head", "no chunk"],
)  # fmt: skip
async def test_answers_that_are_none_are_told(socket: Path, answer: bytes) -> None:
    serve, _ = answering(answer, then_close=True)
    async with connected(socket, serve) as http:
        with pytest.raises(BrokenAnswerError):
            await http.request("GET", "/")


async def test_silence_ends_the_waiting(socket: Path) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with connected(socket, say_nothing, silence_limit=0.05) as http:
        with pytest.raises(TimeoutError):
            await http.request("GET", "/")


async def test_a_stream_comes_in_parts_and_its_silence_is_noticed(socket: Path) -> None:
    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED[: CHUNKED.index(b"0\r\n\r\n")])
        await reader.read()
        writer.close()

    async with connected(socket, stream, silence_limit=0.2) as http, http.stream("/stream") as (status, parts):
        assert status == 200
        assert [await anext(parts), await anext(parts)] == [b"one", b"two!"]
        with pytest.raises(TimeoutError):
            await anext(parts)


async def test_nobody_there_is_told(socket: Path) -> None:
    for address in (str(socket), "http://127.0.0.1:1/base"):
        with pytest.raises(OSError):
            await HttpConnection(address, silence_limit=1.0).request("GET", "/")


async def test_over_tcp_the_path_of_the_url_comes_first(tmp_path: Path) -> None:
    serve, asked = answering(WHOLE)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    http = HttpConnection(f"http://127.0.0.1:{port}/behind/", silence_limit=20.0)
    assert (await http.request("GET", "/health")).body == b"hello"
    assert asked[0].startswith(f"GET /behind/health HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n".encode())
    http.close()
    server.close()
