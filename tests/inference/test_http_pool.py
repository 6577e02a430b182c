"""Connections to a server: kept, shared out, given up when they are of no use, whatever the server does with them."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from atropos_tui.inference import http_pool
from atropos_tui.inference.http_pool import ConnectionPool, new_http_client
from tests.inference.managing import until
from tests.inference.tiny_http_server import Received, TinyHttpServer, answer


def replying(*replies: bytes | None) -> TinyHttpServer:
    """A server that gives these answers in turn, and the last one from then on."""
    rest = list(replies)

    async def handler(_: Received) -> bytes | None:
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return TinyHttpServer(handler)


async def test_a_connection_is_used_again() -> None:
    async with replying(answer(200, {"a": 1})) as server, new_http_client(60) as http:
        for _ in range(5):
            assert (await http.get(server.root)).json() == {"a": 1}
        assert server.connections == 1


async def test_requests_at_once_have_a_connection_each_and_leave_them_to_later_ones() -> None:
    async def slow(request: Received) -> bytes:
        await asyncio.sleep(0.02)
        return answer(200, request.body)

    async with TinyHttpServer(slow) as server, new_http_client(60) as http:
        for _ in range(3):
            answers = await asyncio.gather(*(http.post(server.root, content=str(i)) for i in range(20)))
            assert [reply.text for reply in answers] == [str(i) for i in range(20)]
        assert server.connections == 20


async def test_a_connection_that_was_closed_while_idle_is_replaced_without_a_word() -> None:
    async with replying(answer(200, {"a": 1})) as server, new_http_client(60) as http:
        await http.get(server.root)
        server.drop_connections()
        assert (await http.get(server.root)).status_code == 200
        assert server.connections == 2


async def test_a_connection_that_is_closed_at_the_moment_of_use_is_replaced_too() -> None:
    async with replying(answer(200), None, answer(200)) as server, new_http_client(60) as http:
        await http.get(server.root)
        assert (await http.get(server.root)).status_code == 200
        assert server.connections == 2


async def test_a_new_connection_that_is_closed_without_an_answer_is_an_error() -> None:
    async with replying(None) as server, new_http_client(60) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="without an answer"):
            await http.get(server.root)
        assert server.connections == 1


async def test_old_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with replying(answer(200)) as server, new_http_client(60) as http:
        await asyncio.gather(*(http.get(server.root) for _ in range(3)))
        monkeypatch.setattr(http_pool, "KEEP_ALIVE", -1.0)
        await http.get(server.root)
        assert server.connections == 4
        await until(lambda: len(server._open) == 1)


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nuntil the end", "until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", "hi"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
    ],
    ids=["chunked", "no length", "continue", "empty"],
)
async def test_answers_of_all_shapes_are_read(reply: bytes, body: str) -> None:
    async with replying(reply) as server, new_http_client(60) as http:
        for _ in range(2):
            assert (await http.get(server.root)).text == body


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc", "broke off"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n", "broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP"),
    ],
    ids=["too short", "chunk missing", "another protocol"],
)
async def test_answers_that_are_none_are_errors(reply: bytes, error: str) -> None:
    async with replying(reply) as server, new_http_client(60) as http:
        with pytest.raises(httpx.RemoteProtocolError, match=error):
            await http.get(server.root)


async def test_of_an_answer_without_end_the_beginning_is_read_and_the_connection_given_up() -> None:
    endless = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 40
    async with (
        replying(endless) as server,
        httpx.AsyncClient(transport=ConnectionPool(longest_answer=10), timeout=60) as http,
    ):
        for count in (1, 2):
            assert (await http.get(server.root)).text.startswith("x" * 10)
            assert server.connections == count


async def test_a_compressed_answer_is_unpacked() -> None:
    import gzip

    packed = answer(200, gzip.compress(b"hello"), {"content-encoding": "gzip"})
    async with replying(packed) as server, new_http_client(60) as http:
        assert (await http.get(server.root)).content == b"hello"


async def never(_: Received) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


async def test_silence_is_a_read_timeout_and_the_connection_is_given_up() -> None:
    async with TinyHttpServer(never) as server, new_http_client(0.1) as http:
        with pytest.raises(httpx.ReadTimeout):
            await http.get(server.root)
        await until(lambda: not server._open)


async def test_a_cancelled_request_gives_up_its_connection() -> None:
    async with TinyHttpServer(never) as server, new_http_client(60) as http:
        asking = asyncio.create_task(http.get(server.root))
        await until(lambda: len(server._open) == 1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: not server._open)


async def test_closing_the_client_closes_all_connections() -> None:
    async with replying(answer(200)) as server:
        async with new_http_client(60) as http:
            await http.get(server.root)
            assert len(server._open) == 1
        await until(lambda: not server._open)


async def test_nobody_listening_is_a_connect_error_in_plain_words() -> None:
    server = replying(answer(200))
    async with server:
        pass
    async with new_http_client(60) as http:
        with pytest.raises(httpx.ConnectError, match="Connection refused"):
            await http.get(server.root)


async def test_proxies_named_by_the_environment_are_left_to_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    def transport() -> object:
        return new_http_client(60)._transport

    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(transport(), ConnectionPool)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert not isinstance(transport(), ConnectionPool)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key in one file."""
    pem = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", tmp_path / "cert.pem"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pem.write_text(pem.read_text() + (tmp_path / "cert.pem").read_text())
    return pem


async def _tls_request(certificate: Path, trust: Callable[[], ssl.SSLContext]) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with TinyHttpServer(_ok) as server:
        secured = await asyncio.get_running_loop().create_server(server.new_connection, "127.0.0.1", 0, ssl=context)
        port = secured.sockets[0].getsockname()[1]
        pool = ConnectionPool()
        pool._tls = trust()
        try:
            async with httpx.AsyncClient(transport=pool, timeout=60) as http:
                return (await http.get(f"https://127.0.0.1:{port}/")).status_code
        finally:
            secured.close()


async def _ok(_: Received) -> bytes:
    return answer(200)


async def test_tls_is_spoken_and_certificates_are_checked(certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    assert await _tls_request(certificate, lambda: trusting) == 200
    with pytest.raises(httpx.ConnectError, match="certificate"):
        await _tls_request(certificate, httpx.create_ssl_context)
