"""Threads for functions of the author's that block, such as a reward that runs code or calls a judge."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 64


class AuthorThreads:
    """Up to `MOST` threads, made when they are needed.

    Daemons, unlike those of `concurrent.futures`: a function that never returns must not keep the process alive. Not
    asyncio's common ones, of which a small machine has half a dozen.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._lock = threading.Lock()

    async def run(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """The function's result, in the context of the caller. A cancellation leaves a function that runs alone."""
        call = functools.partial(contextvars.copy_context().run, function, *arguments, **keywords)
        result: Future[T] = Future()
        self._work.put((result, call))
        self._see_that_somebody_takes_it()
        return await asyncio.wrap_future(result)

    def _see_that_somebody_takes_it(self) -> None:
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._count == MOST:
                return
            self._count += 1
            name = f"author-{self._count}"
        threading.Thread(target=self._take, name=name, daemon=True).start()

    def _take(self) -> None:
        while True:
            result, call = self._work.get()
            told = _outcome(call) if result.set_running_or_notify_cancel() else None
            # Before the result is told, so that whoever gets it finds this thread free for the next call.
            self._idle.release()
            if told is not None:
                told(result)
            del result, call, told  # a thread that waits holds nothing of the author's


def _outcome(call: Callable[[], Any]) -> Callable[[Future[Any]], None]:
    """Makes the call, and what then tells its outcome."""
    try:
        value = call()
    except BaseException as raised:  # noqa: BLE001  goes on to whoever awaits it
        error = raised
        return lambda result: result.set_exception(error)
    return lambda result: result.set_result(value)
