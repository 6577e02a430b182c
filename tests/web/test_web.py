"""The screen in a browser tab, spoken to as a browser does: a page, and a web socket with a terminal's bytes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import httpx
import pyte
import pytest

from tests.end_to_end.marked_processes import wait_until
from tests.verbs.served_runs import ServedRuns

COLUMNS, ROWS = 120, 40
PATIENCE = 60.0


@pytest.fixture
def page(runs: ServedRuns) -> Iterator[str]:
    runs.serve("shown")
    with web_server(runs, "shown") as url:
        yield url


@contextmanager
def web_server(runs: ServedRuns, *argv: str) -> Iterator[str]:
    """Its address; it is ended by SIGTERM, and leaves no process of a screen."""
    command = runs.command("web", *argv, "--port", 0)
    environment = runs.environment | {"HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 128 + signal.SIGTERM


class Tab:
    """What a tab shows, as a screen of characters."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    async def press(self, key: str) -> None:
        await self.socket.send_json(["stdin", key])

    async def wait_for(self, text: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not any(text in line for line in self._screen.display):
                    message = await self.socket.receive()
                    assert message.type is aiohttp.WSMsgType.BINARY, message
                    self._stream.feed(message.data)
        except TimeoutError:
            raise AssertionError(f"{text!r} never came:\n" + "\n".join(self._screen.display)) from None


@asynccontextmanager
async def tab(url: str) -> AsyncIterator[Tab]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{url}/ws?width={COLUMNS}&height={ROWS}", headers={"Origin": url}) as socket,
    ):
        yield Tab(socket)


def screens(runs: ServedRuns) -> list[int]:
    """The processes of tabs."""
    return [pid for pid, command in runs.processes.alive().items() if " attach " in command]


async def test_a_tab_shows_the_run_and_takes_keys_but_no_commands(page: str, runs: ServedRuns) -> None:
    async with tab(page) as shown:
        await shown.wait_for("Rollout queue")
        await shown.wait_for("read-only")
        await shown.press("p")
        await shown.wait_for("this screen cannot change the run")
        await shown.press("?")
        await shown.wait_for("Keys")
        status = await asyncio.to_thread(runs.status, "shown")
        assert status["run"]["state"] == "running"
    await asyncio.to_thread(wait_until, lambda: not screens(runs), within=PATIENCE)


async def test_a_tab_that_is_closed_at_any_moment_leaves_no_process(page: str, runs: ServedRuns) -> None:
    for delay in (0.0, 0.05, 0.3, 0.6):
        async with tab(page) as closing:
            await closing.socket.send_json(["resize", {"width": 100, "height": 30}])
            if delay:
                await asyncio.wait([asyncio.ensure_future(closing.socket.receive())], timeout=delay)
    await asyncio.to_thread(wait_until, lambda: not screens(runs), within=PATIENCE)


async def test_pages_of_other_sites_may_not_watch(page: str) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{page}/ws", headers={"Origin": "http://elsewhere.example"})
        assert refused.value.status == 403
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        assert (await http.get(page, headers={"Host": "rebound.example:8765"})).status_code == 403
        behind_ssh = await http.get(page, headers={"Host": "localhost:9999"})
        assert "ws://localhost:9999/ws" in behind_ssh.text
        assert "https://" not in behind_ssh.text
        assert (await http.get(f"{page}/static/js/textual.js")).status_code == 200


def run_to_its_end(runs: ServedRuns, name: str) -> None:
    runs.serve(name)
    runs.wait_for_groups(name, 2)
    runs.run("stop", name)


async def test_a_run_that_ended_is_shown_from_its_record(runs: ServedRuns) -> None:
    await asyncio.to_thread(run_to_its_end, runs, "ended")
    with web_server(runs, "ended") as url:
        async with tab(url) as shown:
            await shown.wait_for("finished")


def test_without_a_run_it_says_so(runs: ServedRuns) -> None:
    runs.run("web", "nothing", status=2)
