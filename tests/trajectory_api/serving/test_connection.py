"""Connections over real sockets: order, ends, failures, and clients of every kind of manners."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from atropos_tui.http_server import bind_tcp
from atropos_tui.trajectory_api.http import Answer, Request
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.serving.server import Server

BOUND = 60.0


class Echo:
    """Answers with what it was asked; `/wait` once `gate` is open, `/slow` after some rounds of the loop."""

    body_limit = 10_000_000

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        self.settled: list[bool] = []

    def refusal(self, head: Request) -> Answer | None:
        return Answer(b"early", 403) if head.path == "/forbidden" else None

    def refused(self, error: RequestError) -> Answer:
        return Answer(str(error).encode(), error.status)

    async def answer(self, request: Request) -> Answer:
        if request.path == "/wait":
            self.waiting.set()
            await self.gate.wait()
        elif request.path == "/slow":
            for _ in range(5):
                await asyncio.sleep(0)
        elif request.path == "/broken":
            raise ZeroDivisionError("on purpose")
        elif request.path == "/refused":
            raise RequestError(409, "not now")
        if request.path == "/unsettled":
            return Answer(b"x", settle=lambda arrived: self.settled[arrived])  # type: ignore[arg-type,return-value]
        if request.path == "/batch":
            return Answer([b"x" * 4_000_000, b"y"], settle=self.settled.append)
        return Answer(request.method.encode() + b" " + request.path.encode() + b" " + bytes(request.body))


class Client:
    """Sends bytes, reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, wire: bytes) -> None:
        self.writer.write(wire)

    async def answer(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        head = (await self._bounded(self.reader.readuntil(b"\r\n\r\n"))).decode()
        status, *lines = head.rstrip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        size = int(headers.get("content-length", 0)) if body else 0
        return int(status.split()[1]), headers, await self._bounded(self.reader.readexactly(size))

    async def is_closed(self) -> bool:
        return await self._bounded(self.reader.read(1)) == b""

    async def _bounded(self, wait: Awaitable[bytes]) -> bytes:
        return await asyncio.wait_for(wait, BOUND)


Connect = Callable[[], Awaitable[Client]]


@pytest.fixture
def application() -> Echo:
    return Echo()


@pytest.fixture
async def server(application: Echo) -> AsyncIterator[tuple[Server, int]]:
    server, listener, ready = Server(application), bind_tcp("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.ensure_future(server.serve_on(listener, ready.set))
    await asyncio.wait_for(ready.wait(), BOUND)
    yield server, listener.getsockname()[1]
    server.stop()
    server.stop()
    await asyncio.wait_for(serving, BOUND)


@pytest.fixture
async def connect(server: tuple[Server, int]) -> AsyncIterator[Connect]:
    clients: list[Client] = []

    async def connect() -> Client:
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", server[1])))
        return clients[-1]

    yield connect
    for client in clients:
        client.writer.close()
        with contextlib.suppress(OSError):
            await client.writer.wait_closed()


def get(path: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str) -> bytes:
    return get(path, f"Content-Length: {len(body)}", *headers, method="POST") + body


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  what it waits for is another's affair
            await asyncio.sleep(0.01)


async def test_one_connection_serves_many_requests(connect: Connect) -> None:
    client = await connect()
    for index in range(3):
        client.send(post(f"/{index}", b"x" * 70_000))
        status, headers, body = await client.answer()
        assert (status, body) == (200, b"POST /%d " % index + b"x" * 70_000)
        assert "connection" not in headers


async def test_requests_that_do_not_wait_for_answers_are_answered_in_order(connect: Connect) -> None:
    client = await connect()
    paths = ["/1", "/slow", "/2", "/refused", "/slow", "/3"]
    client.send(b"".join(get(path) for path in paths))
    answers = [await client.answer() for _ in paths]
    assert [body for _, _, body in answers] == [
        b"GET /1 ", b"GET /slow ", b"GET /2 ", b"not now", b"GET /slow ", b"GET /3 "
    ]  # fmt: skip


async def test_one_client_that_waits_keeps_no_other_waiting(connect: Connect, application: Echo) -> None:
    patient, other = await connect(), await connect()
    patient.send(get("/wait"))
    await asyncio.wait_for(application.waiting.wait(), BOUND)
    other.send(get("/status"))
    assert (await other.answer())[2] == b"GET /status "
    application.gate.set()
    assert (await patient.answer())[2] == b"GET /wait "


@pytest.mark.parametrize("wire", [get("/", "Connection: close"), get("/", version="1.0")], ids=["close", "HTTP/1.0"])
async def test_a_connection_that_is_not_to_stay_is_closed(connect: Connect, wire: bytes) -> None:
    client = await connect()
    client.send(wire + get("/never"))
    status, headers, _ = await client.answer()
    assert (status, headers["connection"]) == (200, "close")
    assert await client.is_closed()


async def test_an_answer_to_head_has_no_body(connect: Connect) -> None:
    client = await connect()
    client.send(get("/x", method="HEAD") + get("/y"))
    status, headers, _ = await client.answer(body=False)
    assert (status, headers["content-length"]) == (200, "8")
    assert (await client.answer())[2] == b"GET /y "


async def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(connect: Connect) -> None:
    client = await connect()
    client.send(get("/x", "Content-Length: 4", "Expect: 100-continue", method="POST"))
    assert (await client.answer())[0] == 100
    client.send(b"body")
    assert (await client.answer())[2] == b"POST /x body"


async def test_a_refused_request_is_answered_before_its_body_has_come(connect: Connect) -> None:
    client = await connect()
    client.send(get("/forbidden", "Content-Length: 1000000", method="POST"))
    assert (await client.answer())[::2] == (403, b"early")
    client.send(b"z" * 1_000_000 + get("/next"))
    assert (await client.answer())[2] == b"GET /next "


async def test_what_is_no_http_is_answered_and_closed(connect: Connect) -> None:
    client = await connect()
    client.send(b"\x16\x03\x01\x00\xa5\x01\x00\x00")
    assert (await client.answer())[0] == 400
    assert await client.is_closed()


async def test_a_handler_that_fails_is_a_500_and_a_line_in_the_log(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect()
    client.send(get("/broken"))
    assert (await client.answer())[0] == 500
    assert await client.is_closed()
    assert "GET /broken failed" in caplog.text
    assert "ZeroDivisionError: on purpose" in caplog.text


async def test_a_watched_answer_is_settled_as_arrived_when_all_of_it_was_read(
    connect: Connect, application: Echo
) -> None:
    client = await connect()
    client.send(get("/batch"))
    _, _, body = await client.answer()
    assert len(body) == 4_000_001
    await until(lambda: application.settled == [True])
    client.send(get("/after"))
    assert (await client.answer())[2] == b"GET /after "


async def test_an_answer_that_cannot_be_settled_ends_its_connection(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect()
    client.send(get("/unsettled"))
    assert (await client.answer())[2] == b"x"
    with contextlib.suppress(ConnectionResetError):
        assert await client.is_closed()
    assert "the answer to GET /unsettled failed" in caplog.text


async def test_a_watched_answer_is_settled_as_lost_when_the_client_goes(
    server: tuple[Server, int], application: Echo
) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", server[1]))
        await loop.sock_sendall(client, get("/batch"))
        assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 200 OK")
        assert application.settled == []
    await until(lambda: application.settled == [False])


async def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(
    application: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped trainer would keep the groups of its batch for as long as its machine is there."""
    server = Server(application, patience=0.3, sweep_every=0.01)
    listener, ready = bind_tcp("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.ensure_future(server.serve_on(listener, ready.set))
    await asyncio.wait_for(ready.wait(), BOUND)
    loop = asyncio.get_running_loop()
    with socket.socket() as stopped:
        stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        stopped.setblocking(False)
        await loop.sock_connect(stopped, ("127.0.0.1", listener.getsockname()[1]))
        await loop.sock_sendall(stopped, get("/batch"))
        await until(lambda: application.settled == [False])
    assert "took nothing of its answer" in caplog.text
    server.stop()
    await asyncio.wait_for(serving, BOUND)


async def test_leave_to_send_a_body_does_not_get_into_an_answer_under_way(connect: Connect, application: Echo) -> None:
    client = await connect()
    client.send(get("/wait"))
    await asyncio.wait_for(application.waiting.wait(), BOUND)
    client.send(get("/x", "Content-Length: 4", "Expect: 100-continue", method="POST"))
    application.gate.set()
    assert (await client.answer())[2] == b"GET /wait "
    assert (await client.answer())[0] == 100
    client.send(b"body")
    assert (await client.answer())[2] == b"POST /x body"


async def test_a_client_that_is_gone_before_its_answer_does_no_harm(connect: Connect, application: Echo) -> None:
    client = await connect()
    client.send(get("/wait"))
    await asyncio.wait_for(application.waiting.wait(), BOUND)
    client.writer.transport.abort()
    application.gate.set()
    other = await connect()
    other.send(get("/status"))
    assert (await other.answer())[2] == b"GET /status "


async def test_a_server_that_ends_sends_the_answers_under_way_and_closes_the_rest(application: Echo) -> None:
    server, listener, ready = Server(application), bind_tcp("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.ensure_future(server.serve_on(listener, ready.set))
    await asyncio.wait_for(ready.wait(), BOUND)
    port = listener.getsockname()[1]
    idle, busy = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(2)]
    idle.send(get("/x"))
    await idle.answer()
    busy.send(get("/wait"))
    await asyncio.wait_for(application.waiting.wait(), BOUND)
    server.stop()
    assert await idle.is_closed()
    application.gate.set()
    status, headers, body = await busy.answer()
    assert (status, headers["connection"], body) == (200, "close", b"GET /wait ")
    assert await busy.is_closed()
    await asyncio.wait_for(serving, BOUND)
    for client in (idle, busy):
        client.writer.close()


async def test_a_connection_that_is_silent_for_long_is_closed(application: Echo) -> None:
    server = Server(application, keep_alive=BOUND, sweep_every=0.01)
    listener, ready = bind_tcp("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.ensure_future(server.serve_on(listener, ready.set))
    await asyncio.wait_for(ready.wait(), BOUND)
    port = listener.getsockname()[1]
    silent, halfway, waiting = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(3)]
    halfway.send(get("/x", "Content-Length: 100", method="POST") + b"half")
    waiting.send(get("/wait"))
    await asyncio.wait_for(application.waiting.wait(), BOUND)
    server._keep_alive = 0.05
    assert await silent.is_closed()
    assert await halfway.is_closed()
    application.gate.set()
    assert (await waiting.answer())[2] == b"GET /wait "
    server.stop()
    await asyncio.wait_for(serving, BOUND)
    for client in (silent, halfway, waiting):
        client.writer.close()
