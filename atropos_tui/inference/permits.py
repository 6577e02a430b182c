"""Permits to have a request in flight, handed out in order of asking and usable from any thread and event loop."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Split = Literal["train", "eval"]


class Permits:
    """How many requests of one split a server may have in flight, and how many it has.

    `weight` scales the limit to an environment's share of the batch, but never below one. `reserved` are sessions that
    sit on the server without a request in flight: they count when the least loaded server is chosen, and block nobody.
    """

    def __init__(self, max_val: int) -> None:
        self.max_val = max_val
        self.weight = 1.0
        self.in_use = 0
        self.reserved = 0

    @property
    def limit(self) -> int:
        # Rounded first, because 0.07 * 100 is a little more than 7 in floating point.
        return max(1, math.ceil(round(self.max_val * self.weight, 9)))

    @property
    def free(self) -> int:
        return max(0, self.limit - self.in_use)


class PermitHolder(Protocol):
    """A server as the queue sees it."""

    sem: Permits
    eval_sem: Permits

    @property
    def usable(self) -> bool: ...


Candidates: TypeAlias = tuple[PermitHolder, ...]


def permits_of(server: PermitHolder, split: Split) -> Permits:
    return server.sem if split == "train" else server.eval_sem


def free_permits(server: PermitHolder, split: Split) -> int:
    """Permits that may be taken now.

    Both splits end on the same machine, so training leaves those free that a running evaluation has not taken yet;
    one request it may always have, or a small limit would stop it altogether.
    """
    free = permits_of(server, split).free
    if split == "eval" or server.eval_sem.in_use == 0 or free == 0:
        return free
    return max(free - server.eval_sem.free, 1 if server.sem.in_use == 0 else 0)


@dataclass(eq=False, slots=True)
class _Waiter:
    ticket: int
    among: Candidates
    split: Split
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]
    patience: float
    granted: PermitHolder | None = None
    failed: Exception | None = None
    unusable_since: float | None = None


class PermitQueue:
    """Serves all who may use the same servers, first come first served; a permit that comes free wakes one at once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tickets = itertools.count()
        # One line for each choice of servers, so that who waits for a full server does not hold up the others.
        self._lines: dict[tuple[Candidates, Split], OrderedDict[int, _Waiter]] = {}

    async def acquire(self, among: Candidates, split: Split, patience: float) -> PermitHolder:
        """Take a permit of the least loaded usable server; wait until there is one.

        Raises what `expire` made when no server was usable for `patience` seconds.
        """
        with self._lock:
            server = _least_loaded(among, split)
            if server is not None:
                permits_of(server, split).in_use += 1
                return server
            loop = asyncio.get_running_loop()
            waiter = _Waiter(next(self._tickets), among, split, loop, loop.create_future(), patience)
            self._lines.setdefault((among, split), OrderedDict())[waiter.ticket] = waiter
        try:
            await waiter.future
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        if waiter.failed is not None:
            raise waiter.failed
        assert waiter.granted is not None
        return waiter.granted

    def release(self, server: PermitHolder, split: Split) -> None:
        with self._lock:
            permits_of(server, split).in_use -= 1
            self._grant()

    def wake(self) -> None:
        """Look again: a limit or a server's health has changed."""
        with self._lock:
            self._grant()

    def reserve(self, among: Candidates) -> PermitHolder:
        """The server that a session shall sit on: usable if one is, and least loaded. End it with `unreserve`."""
        with self._lock:
            usable = [server for server in among if server.usable] or list(among)
            server = max(usable, key=lambda server: server.sem.limit - server.sem.in_use - server.sem.reserved)
            server.sem.reserved += 1
            return server

    def unreserve(self, server: PermitHolder) -> None:
        with self._lock:
            server.sem.reserved -= 1

    def expire(self, now: float, make_error: Callable[[Candidates, float], Exception]) -> None:
        """Fail those who have waited long enough for a usable server, with the error made of their servers and seconds.
        Called again and again while some server is not usable."""
        with self._lock:
            waiters = [waiter for line in self._lines.values() for waiter in line.values()]
            for waiter in waiters:
                if any(server.usable for server in waiter.among):
                    waiter.unusable_since = None
                elif waiter.unusable_since is None:
                    waiter.unusable_since = now
                elif now - waiter.unusable_since >= waiter.patience:
                    self._remove(waiter)
                    waiter.failed = make_error(waiter.among, waiter.patience)
                    _resume(waiter)

    def _grant(self) -> None:
        """Serve the first in line as long as somebody can be served. Called with the lock held."""
        while True:
            served: tuple[_Waiter, PermitHolder] | None = None
            for (among, split), line in self._lines.items():
                first = next(iter(line.values()))
                if served is not None and served[0].ticket < first.ticket:
                    continue
                server = _least_loaded(among, split)
                if server is not None:
                    served = first, server
            if served is None:
                return
            waiter, server = served
            self._remove(waiter)
            waiter.granted = server
            permits = permits_of(server, waiter.split)
            permits.in_use += 1
            if not _resume(waiter):
                permits.in_use -= 1

    def _remove(self, waiter: _Waiter) -> None:
        line = self._lines[waiter.among, waiter.split]
        del line[waiter.ticket]
        if not line:
            del self._lines[waiter.among, waiter.split]

    def _abandon(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.granted is not None:
                # Granted and cancelled in the same turn of the loop: the permit goes to the next in line.
                self.release(waiter.granted, waiter.split)
            elif waiter.failed is None:
                self._remove(waiter)


def _least_loaded(among: Candidates, split: Split) -> PermitHolder | None:
    """The usable server with most room, sessions counted as load; the first of equals; None when all are full."""
    best, best_room = None, -math.inf
    for server in among:
        free = free_permits(server, split) if server.usable else 0
        room = free - (server.sem.reserved if split == "train" else 0)
        if free > 0 and room > best_room:
            best, best_room = server, room
    return best


def _resume(waiter: _Waiter) -> bool:
    """Let a waiter go on, on its own loop; False when that loop is gone."""
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is waiter.loop:
        _resolve(waiter.future)
        return True
    try:
        waiter.loop.call_soon_threadsafe(_resolve, waiter.future)
    except RuntimeError:
        return False
    return True


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
