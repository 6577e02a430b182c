"""What can go wrong with a request, and whether it is worth another try."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from atropos_tui.errors import InferenceError

LONGEST_BODY = 500
# Such as vLLM's "n must be 1 when using greedy sampling", or llama.cpp's "Only one completion choice is allowed".
_ABOUT_N = re.compile(r"(?i)(?<!\w)n(?!\w)['\"`]?\s*(:|must|should|has to|is not|>|=)|only one completion choice")
REMEDIES = {
    401: "check the server's api_key",
    403: "check the server's api_key",
    404: "check the server's base_url and model_name",
}


class RequestError(InferenceError):
    """One request failed.

    `retry`: the same may succeed later. `busy`: the server asks for patience, perhaps for `retry_after` seconds.
    `unreachable`: nothing listens there. `doubtful`: the server may be down or hang; a probe will tell. `refuses_n`: it
    gives one choice at a time only.
    """

    def __init__(
        self,
        fault: str,
        remedy: str = "",
        *,
        kind: str,
        retry: bool = True,
        busy: bool = False,
        retry_after: float = 0.0,
        unreachable: bool = False,
        doubtful: bool = False,
        refuses_n: bool = False,
    ) -> None:
        super().__init__(fault, remedy, kind=kind)
        self.retry = retry
        self.busy = busy
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.doubtful = doubtful
        self.refuses_n = refuses_n


def malformed(url: str, what: str) -> RequestError:
    """A 2xx answer that is not what its format says."""
    return RequestError(f"{url} answered {what}", kind="malformed")


def timed_out(url: str, seconds: float) -> RequestError:
    return RequestError(
        f"{url} did not answer within {seconds:g} s", "raise the server's timeout if it is just slow",
        kind="timeout", doubtful=True,
    )  # fmt: skip


def from_status(url: str, status: int, body: str, headers: Mapping[str, str]) -> RequestError:
    """An answer with an error status; the message is the server's own."""
    message, code = _server_message(body)
    busy = status in (429, 503) and code != "insufficient_quota"
    return RequestError(
        f"{url} answered HTTP {status}: {message}",
        REMEDIES.get(status, ""),
        kind=f"http_{status}",
        retry=busy or status in (408, 409, 425) or status >= 500,
        busy=busy,
        retry_after=_seconds(headers.get("retry-after", "")),
        doubtful=status >= 500,
        refuses_n=status in (400, 422) and _ABOUT_N.search(message) is not None,
    )


def from_transport(url: str, error: httpx.HTTPError | httpx.InvalidURL) -> RequestError:
    """No usable answer came over the network."""
    words = str(error) or type(error).__name__
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return RequestError(f"{url!r} is no address of a server: {words}", "check its base_url",
                             kind="address", retry=False)  # fmt: skip
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return RequestError(f"cannot connect to {url}: {words}", "start the server or correct its base_url",
                             kind="connect", unreachable=True)  # fmt: skip
    if isinstance(error, httpx.TimeoutException):
        return RequestError(f"{url} was silent for too long: {words}", kind="timeout", doubtful=True)
    return RequestError(f"{url} broke off the connection: {words}", kind="connection_lost", doubtful=True)


def _server_message(body: str) -> tuple[str, str]:
    """The message and the code that a server put into an error body, whichever dialect it speaks."""
    try:
        parsed: Any = json.loads(body)
    except ValueError:
        parsed = None
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail")
        if isinstance(message, str):
            return _one_line(message), str(error.get("code") or "")
    return _one_line(error if isinstance(error, str) else body) or "(no body)", ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_BODY else line[:LONGEST_BODY] + "…"


def _seconds(retry_after: str) -> float:
    """Retry-After, a number of seconds or a date (RFC 9110, 10.2.3), in seconds from now; 0 for anything else."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max(0.0, (date.astimezone(UTC) - datetime.now(UTC)).total_seconds())
