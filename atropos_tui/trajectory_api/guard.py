"""Who may use the server: on loopback everybody on the machine, elsewhere whoever has the token."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.http import Request
from atropos_tui.trajectory_api.request_errors import RequestError

OPEN_TO_ALL = frozenset({"/health"})


class Guard:
    """Checks each request. Without a token it only keeps out foreign web pages.

    The token comes as `Authorization: Bearer TOKEN`, or as the password of Basic authentication, so that clients which
    know nothing of tokens can use a URL like `http://any:TOKEN@host:8000`.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token.encode() if token else None

    def check(self, request: Request) -> None:
        """Raises RequestError: 401 without the right token, 403 for a request that a foreign web page made."""
        if request.path in OPEN_TO_ALL:
            return
        site = request.headers.get(b"sec-fetch-site")
        if site not in (None, b"none", b"same-origin"):
            raise RequestError(403, "web pages of other origins may not use this server")
        if self._token is None:
            # A foreign name that leads to loopback is how a web page pretends to be of this origin (DNS rebinding);
            # browsers don't tell such a request's site, but always the languages of their owner.
            by_browser = site is not None or b"accept-language" in request.headers
            if by_browser and not is_loopback(_host_in(request.headers.get(b"host", b""))):
                raise RequestError(403, "browsers may use this server by its loopback address only")
            return
        if not hmac.compare_digest(_token_in(request.headers.get(b"authorization", b"")), self._token):
            raise RequestError(401, "this server wants a token", "send it as 'Authorization: Bearer TOKEN'")


def _token_in(authorization: bytes) -> bytes:
    scheme, _, credentials = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return credentials.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(credentials, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


def _host_in(header: bytes) -> str:
    """The name or address of a Host header, without the port."""
    host = header.decode("latin-1")
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> str:
    """The token of a file: its only line. Raises UsageError."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain ASCII"
        raise UsageError(f"cannot read the token file {path}: {reason}", "write one line with the token") from error
    if not token or any(character.isspace() for character in token):
        raise UsageError(f"the token file {path} must hold exactly one token", "write one line without blanks")
    return token
