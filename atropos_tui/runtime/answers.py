"""What an answer of the trajectory API to a scored group means."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from atropos_tui.ledger.outcomes import DeliveredAs

# Refusals that are not about the group: they may end, so the group waits.
TEMPORARY = frozenset({401, 408, 425, 429})
LONGEST_BODY = 4000
LONGEST_RETRY_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Accepted:
    how: DeliveredAs


@dataclass(frozen=True, slots=True)
class Refused:
    """The trajectory API will never take this group."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class UnknownEnv:
    """The trajectory API does not know the environment's id: it was restarted, or the address is another server's."""

    body: str


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The group did not arrive, or nobody can tell. `retry_after` is the least wait the server asked for, in seconds.

    `broke` tells that the server broke over this request (HTTP 500), for which the group may be the cause.
    """

    error: str
    body: str = ""
    retry_after: float = 0.0
    broke: bool = False


Answer: TypeAlias = Accepted | Refused | UnknownEnv | TryAgain


def read_answer(status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    body = content.decode("utf-8", "replace")[:LONGEST_BODY]
    if 200 <= status < 300:
        return _read_success(status, content, body)
    if status == 404:
        return UnknownEnv(body)
    if 400 <= status < 500 and status not in TEMPORARY:
        return Refused(status, body)
    return TryAgain(f"HTTP {status}", body, _retry_after(headers.get("retry-after", "")), broke=status == 500)


def _read_success(status: int, content: bytes, body: str) -> Accepted | TryAgain:
    """A 2xx without a JSON object comes from something else than a trajectory API, a proxy for instance."""
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return TryAgain(f"HTTP {status} with an answer that is no JSON object", body)
    if told.get("status") in ("error", "failure"):
        return TryAgain(f"HTTP {status} with status {told['status']!r}", body)
    return Accepted(DeliveredAs.BUFFERED if told.get("status") == "buffered" else DeliveredAs.RECEIVED)


def _retry_after(value: str) -> float:
    """Seconds or an HTTP date, bounded; 0.0 for anything else."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER)  # in this order, NaN becomes 0.0
