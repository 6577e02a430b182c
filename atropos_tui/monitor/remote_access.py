"""The control API over TCP: off unless asked for, and only for who has the token.

The token is in the file `token` of the run directory (0600). It travels in clear text, so over anything but a trusted
network the port belongs behind `ssh -L`.
"""

from __future__ import annotations

import hmac
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atropos_tui.errors import UsageError
from atropos_tui.http_server import bind_tcp, url_of
from atropos_tui.monitor.token_file import token_of


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """A bound TCP socket, and the token that opens it."""

    listener: socket.socket
    token: str

    @property
    def url(self) -> str:
        return url_of(self.listener)


def open_to_others(address: str, run_dir: Path) -> RemoteAccess:
    """Listen on `HOST:PORT`, with the token of this run. Raises UsageError, or OSError when it cannot be kept."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdecimal():
        raise UsageError(f"--listen {address} is no address", "give HOST:PORT, such as 127.0.0.1:7777")
    return RemoteAccess(bind_tcp(host.strip("[]") or "127.0.0.1", int(port)), token_of(run_dir))


class TokenGuard:
    """ASGI: answers 401 to every request without the token, and passes the others on."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, self._expected):
            body = json.dumps({"error": "this run wants its token: attach with --token-file"}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)
