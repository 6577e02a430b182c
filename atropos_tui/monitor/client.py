"""A worker as seen from outside: snapshots, pages and commands over its unix socket, or over TCP with a token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlencode

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.asker import ASKER_HEADER, Via, asker, write_asker
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.http_connection import HttpConnection
from atropos_tui.monitor.notes_file import notes_of_socket
from atropos_tui.monitor.snapshot import ConfigRow, RunSnapshot
from atropos_tui.monitor.wire import SnapshotMerger, query_params, read_config, read_detail, read_page

if TYPE_CHECKING:
    from atropos_tui.monitor.summary import RunSummary

T = TypeVar("T")

# The server sends at least an empty line every 5 s, so a silence of this length means that nobody is there any more.
_SILENCE_LIMIT = 15.0
_ERRORS_FROM = 400
_NOTHING_OF_THE_KIND = (404, 405)


class UnreachableError(AtroposError):
    """The worker's socket does not answer, or stopped answering."""


class RefusedError(AtroposError):
    """The worker answered that it won't: `status` is 403 for a read-only run, 404 for a group it no longer keeps,
    409 for what makes no sense now.
    """

    def __init__(self, fault: str, remedy: str = "", *, status: int) -> None:
        self.status = status
        super().__init__(fault, remedy)


class RunClient:
    """Watches one run and commands it. Every method raises UnreachableError or RefusedError.

    `address` is the path of a unix socket, or an `http://` URL, which wants its token; `via` is told to the run with
    each command, beside the user's name. Nothing is kept between calls: after a failure the same client may simply be
    used again.
    """

    def __init__(self, address: str | Path, token: str = "", *, via: Via = "") -> None:
        self._via = via
        self._address = str(address)
        self._http = HttpConnection(self._address, token, silence_limit=_SILENCE_LIMIT)

    @property
    def notes_file(self) -> Path | None:
        """Where notes on the run are kept; None where its directory is not on this machine."""
        return notes_of_socket(self._address)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._http.close()

    async def snapshot(self) -> RunSnapshot:
        """The whole of what is known now."""
        return self._read(SnapshotMerger().merge, await self._request("GET", "/snapshot"))

    async def summary(self) -> RunSummary:
        """The run in one line, which costs little to ask for."""
        from atropos_tui.monitor.summary import read_summary  # for lists of runs only

        return self._read(read_summary, await self._request("GET", "/summary"))

    async def stream(self, hz: float = 4.0) -> AsyncIterator[RunSnapshot]:
        """Whole snapshots, at most `hz` a second and only when something changed. Ends when the worker says goodbye."""
        merger = SnapshotMerger()
        try:
            async with self._http.stream(f"/stream?{urlencode({'hz': hz})}") as (status, parts):
                if status >= _ERRORS_FROM:
                    raise self._refusal(status, b"".join([part async for part in parts]))
                async for line in _lines(parts):
                    if line != b"{}":
                        yield self._read(merger.merge, line)
        except OSError as error:
            raise self._unreachable(error) from error

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        search: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        """Groups that ended, newest first; `older_than` is the `GroupPage.older_than` or a group of the page before.

        `search` finds words in their messages, which needs a record.
        """
        params: dict[str, str | int] = {"limit": limit}
        if older_than is not None:
            params["older_than"] = older_than
        if outcome:
            params["outcome"] = outcome
        if reason:
            params["reason"] = reason
        if search:
            params["search"] = search
        params |= query_params(query)
        return self._read(read_page, await self._request("GET", "/groups", params))

    async def group(self, group_id: int) -> GroupDetail:
        """One group in full. RefusedError with status 404 when it isn't kept any more."""
        return self._read(read_detail, await self._request("GET", f"/groups/{group_id}"))

    async def config(self) -> tuple[ConfigRow, ...]:
        """The merged configuration, with the source of each value; empty while the run is still being loaded."""
        return self._read(read_config, await self._request("GET", "/config"))

    async def health(self) -> dict[str, Any]:
        """`run_id`, `pid` and `state` of the worker."""
        told = self._read(json.loads, await self._request("GET", "/health"))
        if not isinstance(told, dict) or "run_id" not in told:
            raise self._no_run()
        return told

    async def pause(self) -> None:
        """Let no further group start; those in flight finish."""
        await self._request("POST", "/pause")

    async def pause_now(self) -> None:
        """Let no further group start, and put those in flight back into the backlog."""
        await self._request("POST", "/pause_now")

    async def resume(self) -> None:
        await self._request("POST", "/resume")

    async def step_group(self) -> None:
        """Let exactly one more group start, then stay paused."""
        await self._request("POST", "/step")

    async def cancel_group(self, group_id: int) -> bool:
        """Give up a group that is still being made: it fails as `cancelled`.

        False: the environment's code holds its loop, and the run takes the command when it lets go.
        """
        return self._taken(await self._request("POST", f"/groups/{group_id}/cancel"))

    async def requeue_group(self, group_id: int) -> bool:
        """Put a group that is still being made back into the backlog. False as for `cancel_group`."""
        return self._taken(await self._request("POST", f"/groups/{group_id}/requeue"))

    async def evaluate_now(self) -> bool:
        """Start an evaluation. False as for `cancel_group`."""
        return self._taken(await self._request("POST", "/evaluate"))

    async def stop(self) -> None:
        """End the run in order, and the worker with it."""
        await self._request("POST", "/stop")

    async def _request(self, method: str, path: str, params: dict[str, str | int] | None = None) -> bytes:
        headers = {} if method == "GET" else {ASKER_HEADER: write_asker(asker(self._via))}
        try:
            answer = await self._http.request(method, f"{path}?{urlencode(params)}" if params else path, headers)
        except OSError as error:
            raise self._unreachable(error) from error
        if answer.status >= _ERRORS_FROM:
            raise self._refusal(answer.status, answer.body)
        return answer.body

    def _taken(self, body: bytes) -> bool:
        return bool(self._read(json.loads, body)["taken"])

    def _read(self, reader: Callable[[bytes], T], body: bytes) -> T:
        try:
            return reader(body)
        except ValueError as error:
            raise UnreachableError(
                f"the answer of the worker at {self._address} cannot be read ({error})",
                "worker and screen must be of the same version",
            ) from error

    def _unreachable(self, error: Exception) -> UnreachableError:
        return UnreachableError(
            f"the worker at {self._address} does not answer ({error or type(error).__name__})",
            "the address is wrong, it ended, or the way there is closed"
            if self._address.startswith("http")
            else "it ended, or runs on another machine",
        )

    def _no_run(self) -> UnreachableError:
        return UnreachableError(f"what answers at {self._address} is no run", "give the HOST:PORT that it listens on")

    def _refusal(self, status: int, body: bytes) -> AtroposError:
        try:
            told = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            if status in _NOTHING_OF_THE_KIND:
                return self._no_run()
            told = body.decode(errors="replace")[:200]
        return RefusedError(f"the worker refused: {told}", status=status)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Complete lines."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
