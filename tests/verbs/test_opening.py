"""The screen is loaded while the run is asked for its first snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from atropos_tui.monitor.client import UnreachableError
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.verbs.opening import first_while_loading

NEWEST = RunSnapshot(seq=7, taken_at=1.8e9)


class Answering:
    """A run that tells its newest snapshot at once."""

    def __init__(self) -> None:
        self.closed = False

    async def stream(self) -> AsyncIterator[RunSnapshot]:
        try:
            await self.before()
            yield NEWEST
        finally:
            self.closed = True

    async def before(self) -> None:
        return


class Silent(Answering):
    """A run that takes the question and never answers."""

    async def before(self) -> None:
        await asyncio.Event().wait()


class Gone(Answering):
    """A run that cannot be reached."""

    async def before(self) -> None:
        raise UnreachableError("nobody is there")


async def test_what_the_run_tells_meanwhile_is_known_from_the_start() -> None:
    run = Answering()
    assert await first_while_loading(run) == NEWEST
    assert run.closed


async def test_a_run_that_does_not_answer_is_not_waited_for() -> None:
    run = Silent()
    async with asyncio.timeout(60):
        assert await first_while_loading(run) is None
    assert run.closed


async def test_a_run_that_cannot_be_reached_is_left_to_the_screen() -> None:
    run = Gone()
    assert await first_while_loading(run) is None
    assert run.closed
