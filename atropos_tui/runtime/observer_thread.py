"""A thread for calls to observers, which may hang: it never keeps the process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class ObserverThread:
    """Runs calls one after the other. The thread starts with the first call; `close` lets it end after the last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            try:
                future.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001  goes on to whoever reads the future
                future.set_exception(error)

        self._calls.put(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return future

    @property
    def pending(self) -> int:
        """Calls that wait for their turn."""
        return self._calls.qsize()

    def close(self) -> None:
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
