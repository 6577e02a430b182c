"""The runs that feed a trajectory API, found by what their environments told it when they registered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.http_connection import HttpConnection
from atropos_tui.monitor.run_url import checked_url
from atropos_tui.monitor.unix_socket import UNIX_SCHEME, answers

ANSWER_SECONDS = 10.0
_PATH = "/inspect/environments"


async def registered_runs(api_url: str) -> Sequence[str]:
    """Where the runs answer whose environments are connected: URLs, and paths of unix sockets on this machine.

    Sockets on other machines, and those that killed workers left, answer nobody here and are left out. A token for the
    trajectory API stands in its address, as in `http://any:TOKEN@host:8000`. Raises AtroposError when it does not
    answer, or is not ours and tells nothing of the kind.
    """
    token = unquote(urlsplit(api_url).password or "")
    shown = f"the trajectory API at {api_url.rpartition('@')[2] if token else api_url}"
    connection = HttpConnection(api_url.rstrip("/"), token, silence_limit=ANSWER_SECONDS)
    try:
        answer = await connection.request("GET", _PATH)
    except OSError as error:
        raise AtroposError(f"{shown} does not answer: {error}", "check the address") from error
    finally:
        connection.close()
    try:
        rows: list[dict[str, Any]] = json.loads(answer.body)["environments"] if answer.status == 200 else []
        told = [row["control_url"] for row in rows if row["connected"] and row["control_url"]]
    except (ValueError, KeyError, TypeError) as error:
        raise AtroposError(f"{shown} tells no environments at {_PATH}") from error
    if answer.status != 200:
        raise AtroposError(f"{shown} answers {_PATH} with HTTP {answer.status}", "it must be one of ours")
    return list(filter(None, map(_reachable, told)))


def _reachable(control_url: str) -> str:
    """The address as clients take it; empty for one of another kind, and for a socket where nobody answers."""
    path = control_url.removeprefix(UNIX_SCHEME)
    if path != control_url:
        return path if answers(path) else ""
    try:
        return checked_url(control_url)
    except UsageError:
        return ""
