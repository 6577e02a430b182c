"""The web server: one page, one web socket a tab, and a process of the screen behind each.

textual-serve does the work. What it leaves open is closed here: any web page in the operator's browser could connect to
its web socket, its page names one fixed address (wrong behind `ssh -L`) and loads a font from elsewhere.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from aiohttp import web
from textual_serve.server import Server

from atropos_tui.http_server import url_of

_PAGE = Path(__file__).with_name("page.html")
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_FONT_SIZES = range(6, 49)
_DEFAULT_FONT_SIZE = 14

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer(Server):
    """Serves `atropos-tui ARGV` to each tab, with `title` on the page."""

    def __init__(self, argv: Sequence[str], title: str) -> None:
        # Neither what is around this terminal nor its colours hold in a browser.
        command = ["exec", "env", "-u", "TMUX", "-u", "STY", "-u", "NO_COLOR", sys.executable, "-m", "atropos_tui"]
        super().__init__(shlex.join([*command, *argv]), title=title)
        self._page = jinja2.Template(_PAGE.read_text(encoding="utf-8"), autoescape=True)

    async def run(self, listener: socket.socket, on_ready: Callable[[str], None]) -> None:
        """Serve on this socket until cancelled; every screen has ended then."""
        app = await self._make_app()
        app.middlewares.append(_only_from_here)
        runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=5.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            on_ready(url_of(listener))
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def on_startup(self, app: web.Application) -> None:
        """Nothing is told here: `run` has a callback."""

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, whose web socket is wherever the browser found the page."""
        asked = request.query.get("fontsize", "")
        font_size = int(asked) if asked.isdecimal() and int(asked) in _FONT_SIZES else _DEFAULT_FONT_SIZE
        page = self._page.render(title=self.title, websocket_url=f"ws://{request.host}/ws", font_size=font_size)
        return web.Response(text=page, content_type="text/html")


@web.middleware
async def _only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses requests by another name (a rebound domain) and from pages of other sites: browsers send both along."""
    origin = request.headers.get("Origin")
    if urlsplit(f"//{request.host}").hostname not in _HERE:
        raise web.HTTPForbidden(text="open it as localhost or 127.0.0.1\n")
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise web.HTTPForbidden(text="pages of other sites may not watch\n")
    return await handler(request)
