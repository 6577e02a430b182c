"""See the screen in a real browser, and save the picture: `python docs/make_web_picture.py [--chromium PATH]`.

Starts the demo, serves its screen as `atropos-tui web` does, opens it in headless Chromium (which must be installed)
and saves `docs/web.png`; then presses `?` and saves the help, which stands still while the dashboard moves. Fails when
the picture does not come to rest, for then the key changed nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from atropos_tui.http_server import bind_tcp
from atropos_tui.verbs.pocket_loop import pocket_loop
from atropos_tui.web.server import ScreenServer

PICTURE = Path(__file__).with_name("web.png")
SIZE = (1280, 800)
PATIENCE = 60.0
STILL = 10  # pictures
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip


class BrowserTab:
    """A tab, spoken to in the DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer: dict[str, Any] = await self._socket.receive_json(timeout=PATIENCE)
            if answer.get("id") == number:
                return dict(answer["result"])

    async def picture(self) -> bytes:
        return base64.b64decode((await self.ask("Page.captureScreenshot", format="png"))["data"])

    async def click(self) -> None:
        """In the middle, so that the terminal has the keyboard."""
        place = {"x": SIZE[0] // 2, "y": SIZE[1] // 2, "button": "left", "clickCount": 1}
        await self.ask("Input.dispatchMouseEvent", type="mousePressed", **place)
        await self.ask("Input.dispatchMouseEvent", type="mouseReleased", **place)

    async def press(self, key: str) -> None:
        await self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def still_picture(self) -> bytes:
        """A picture that stays the same for three seconds. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            pictures: list[bytes] = []
            while len(pictures) < STILL or len(set(pictures[-STILL:])) > 1:
                pictures.append(await self.picture())
                await asyncio.sleep(0.3)
        return pictures[-1]


@asynccontextmanager
async def browser(chromium: str, url: str) -> AsyncIterator[BrowserTab]:
    with tempfile.TemporaryDirectory() as profile:
        process = await asyncio.create_subprocess_exec(
            chromium, *QUIET, f"--user-data-dir={profile}", f"--window-size={SIZE[0]},{SIZE[1]}",
            "--remote-debugging-port=0", "--remote-allow-origins=*", url, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await asyncio.to_thread(_devtools_port, Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    pages = [page for page in json.loads(await answer.text()) if page["type"] == "page"]
                async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield BrowserTab(socket)
        finally:
            process.terminate()
            await process.wait()


def _devtools_port(file: Path) -> int:
    """Chromium writes it down once it listens."""
    ends_at = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text()):
        if time.monotonic() > ends_at:
            raise TimeoutError(f"Chromium did not write {file}")
        time.sleep(0.1)
    return int(file.read_text().split()[0])


async def make_picture(chromium: str, seconds: float) -> None:
    async with pocket_loop(seed=0) as loop, asyncio.TaskGroup() as tasks:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        server = ScreenServer(["attach", loop.socket, "--read-only"], title="demo")
        serving = tasks.create_task(server.run(bind_tcp("127.0.0.1", 0), ready.set_result))
        async with browser(chromium, await ready) as tab:
            await asyncio.sleep(seconds)
            dashboard = await tab.picture()
            await tab.click()
            await tab.press("?")
            help_page = await tab.still_picture()
        PICTURE.write_bytes(dashboard)
        PICTURE.with_name("web-help.png").write_bytes(help_page)
        serving.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default="chromium", metavar="PATH", help="the browser (default: chromium)")
    parser.add_argument("--seconds", type=float, default=45.0, metavar="N", help="how long the policy learns before")
    options = parser.parse_args()
    sys.exit(asyncio.run(make_picture(options.chromium, options.seconds)))
