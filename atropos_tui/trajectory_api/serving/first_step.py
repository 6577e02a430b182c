"""Runs a coroutine at once as far as it goes without waiting; most handlers end there and need no task."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rest(Generic[T]):
    """A coroutine that has begun and waits for `future`; to be awaited once, in a task."""

    coroutine: Coroutine[Any, Any, T]
    future: Any

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            yield self.future
        except BaseException as error:  # noqa: BLE001  the coroutine decides what becomes of it, a cancellation too
            try:
                future = self.coroutine.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            return (yield from Rest(self.coroutine, future).__await__())
        return (yield from self.coroutine.__await__())


def first_step(coroutine: Coroutine[Any, Any, T]) -> T | Rest[T]:
    """What the coroutine returns, or the rest of it if it must wait. Raises whatever it raises.

    Up to the first wait it has no task: it cannot use what asks for the current one, such as `asyncio.timeout`.
    """
    try:
        return Rest(coroutine, coroutine.send(None))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
