"""Following a run through broken connections."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.connection import FIRST_WAIT, LONGEST_WAIT, Lost, follow
from tests.ui.recorded import RecordedSource, finished, running


class Scripted(RecordedSource):
    """Each attempt to open the stream gives the next list: snapshots, then perhaps an error."""

    def __init__(self, *attempts: list[RunSnapshot | Exception]) -> None:
        super().__init__()
        self._attempts = list(attempts)

    async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        for item in self._attempts.pop(0):
            if isinstance(item, Exception):
                raise item
            yield item


async def followed(source: Scripted, most: int = 50) -> tuple[list[RunSnapshot | Lost], list[float]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    news: list[RunSnapshot | Lost] = []
    async for item in follow(source, 2.0, sleep):
        news.append(item)
        if len(news) == most:
            break
    return news, waits


async def test_a_run_that_ended_is_not_waited_for() -> None:
    news, waits = await followed(Scripted([running(), finished()]))
    assert news == [running(), finished()]
    assert waits == []


async def test_after_a_break_the_stream_is_opened_again_and_the_reason_told() -> None:
    news, waits = await followed(Scripted([running(), AtroposError("no answer")], [finished()]))
    assert news == [running(), Lost("no answer", FIRST_WAIT), finished()]
    assert waits == [FIRST_WAIT]


async def test_waits_double_up_to_a_limit_and_start_anew_after_a_success() -> None:
    broken: list[list[RunSnapshot | Exception]] = [[ConnectionRefusedError(111, "refused")] for _ in range(8)]
    _, waits = await followed(Scripted(*broken, [running(), AtroposError("gone")], [finished()]))
    assert waits[:8] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_WAIT, LONGEST_WAIT]
    assert waits[8:] == [FIRST_WAIT]


async def test_a_stream_that_just_ends_counts_as_broken_while_the_run_goes_on() -> None:
    news, _ = await followed(Scripted([running()], [finished()]))
    assert news[1] == Lost("the worker closed the connection", FIRST_WAIT)


async def test_a_fault_of_our_own_is_not_taken_for_a_broken_connection() -> None:
    with pytest.raises(ZeroDivisionError):
        await followed(Scripted([ZeroDivisionError()]))
