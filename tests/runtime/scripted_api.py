"""A trajectory API in a thread of its own, on a real socket, that behaves as a script says, request after request."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.ports import hold_port, port_of


@dataclass(frozen=True)
class Request:
    """A request that was read in whole."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def group(self) -> dict[str, Any]:
        gzipped = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.raw) if gzipped else self.raw)


# Takes a request and gives the bytes of the answer, or None to close the connection without one.
Behaviour = Callable[["ScriptedApi", Request], bytes | None]


def http(status: int, body: str | bytes = b"", **headers: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def accept(api: ScriptedApi, request: Request) -> bytes:
    api.take(request)
    return http(200, '{"status":"received"}')


def buffer(api: ScriptedApi, request: Request) -> bytes:
    api.take(request)
    return http(200, '{"status":"buffered","buffer_size":2}')


def lose_reply(api: ScriptedApi, request: Request) -> None:
    """The group arrives, the answer does not."""
    api.take(request)


def say(status: int, body: str | bytes = b"", **headers: str) -> Behaviour:
    return lambda api, request: http(status, body, **headers)


class Last(bytes):
    """An answer after which the connection is closed."""


def garbage(raw: bytes) -> Behaviour:
    return lambda api, request: Last(raw)


class Endless(bytes):
    """An answer of which the last part comes again and again."""


def endless(api: ScriptedApi, request: Request) -> bytes:
    return Endless(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 10_000)


def hang(api: ScriptedApi, request: Request) -> None:
    """No answer before the API is stopped; the connection stays open."""
    api.hanging.wait(600)


def knowing(*env_ids: int) -> Behaviour:
    """Accept groups of these environments; answer 404 to others."""

    def behave(api: ScriptedApi, request: Request) -> bytes:
        env_id = request.group["env_id"]
        return accept(api, request) if env_id in env_ids else http(404, json.dumps({"detail": f"unknown env {env_id}"}))

    return behave


@dataclass
class ScriptedApi:
    """`script` is used up from the left; after it comes `then`. Groups with a known key are not taken twice."""

    script: deque[Behaviour] = field(default_factory=deque)
    then: Behaviour = accept
    requests: list[Request] = field(default_factory=list)
    queue: dict[str, dict[str, Any]] = field(default_factory=dict)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.hanging = threading.Event()
        self._holding = hold_port()  # also after `stop`
        self.port = port_of(self._holding)
        self._at_once = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def group_ids(self) -> list[int]:
        """The numbers of the groups taken, in order."""
        return [int(key.rpartition(":")[2]) for key in list(self.queue)]

    def take(self, request: Request) -> None:
        self.queue.setdefault(request.key, request.group)

    def start(self) -> None:
        """Listen, always on the same port."""
        self.hanging.clear()
        self._loop = asyncio.new_event_loop()
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), daemon=True)
        self._thread.start()
        assert listening.wait(60), "the scripted API does not listen"

    def stop(self) -> None:
        """Close the socket and every connection."""
        self.hanging.set()
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self, listening: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(listening))
        self._loop.close()

    async def _serve(self, listening: threading.Event) -> None:
        self._stopped = asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._talk(reader, writer)
            connections.discard(task)
            writer.transport.abort()

        server = await asyncio.start_server(connected, "127.0.0.1", self.port, reuse_address=True)
        listening.set()
        await self._stopped.wait()
        server.close()
        for task in list(connections):
            task.cancel()
        if connections:
            await asyncio.wait(connections, timeout=60)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await _read_request(reader)
            with self._lock:
                self.requests.append(request)
                behave = self.script.popleft() if self.script else self.then
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                answer = await asyncio.get_running_loop().run_in_executor(None, behave, self, request)
            finally:
                with self._lock:
                    self._at_once -= 1
            if answer is None:
                return
            writer.write(answer)
            await writer.drain()
            if isinstance(answer, Last):
                return
            while isinstance(answer, Endless):
                writer.write(answer[-10_000:])
                await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Request(first.split()[1], headers, await reader.readexactly(int(headers["content-length"])))


@contextlib.contextmanager
def scripted_api(*script: Behaviour, then: Behaviour = accept) -> Iterator[ScriptedApi]:
    """A running API; stopped at the end."""
    api = ScriptedApi(deque(script), then)
    api.start()
    try:
        yield api
    finally:
        with contextlib.suppress(RuntimeError):
            api.stop()


async def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition, within a bound that only a failure reaches."""
    assert await comes_true(condition, seconds), f"{what} did not come within {seconds} s"


async def comes_true(condition: Callable[[], object], seconds: float) -> bool:
    """Whether a condition comes true in the given time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:  # noqa: ASYNC110  conditions of other threads and processes
        await asyncio.sleep(0.005)
    return bool(condition())
