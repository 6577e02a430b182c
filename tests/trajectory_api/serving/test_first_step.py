"""A coroutine that was run up to its first wait goes on as if it had been a task from the beginning."""

from __future__ import annotations

import asyncio

import pytest

from atropos_tui.trajectory_api.serving.first_step import Rest, first_step


async def test_what_never_waits_has_ended_after_the_first_step() -> None:
    async def at_once() -> int:
        return 7

    async def within() -> int:
        return await at_once() + 1

    assert first_step(within()) == 8


async def test_what_waits_goes_on_in_a_task_through_all_its_waits() -> None:
    gates = [asyncio.Event() for _ in range(3)]
    passed: list[int] = []

    async def through() -> str:
        for index, gate in enumerate(gates):
            await gate.wait()
            await asyncio.sleep(0)
            passed.append(index)
        return "through"

    rest = first_step(through())
    assert isinstance(rest, Rest)

    async def finish() -> str:
        return await rest

    task = asyncio.ensure_future(finish())
    for index, gate in enumerate(gates):
        gate.set()
        while len(passed) <= index:  # noqa: ASYNC110  one round of the loop at a time
            await asyncio.sleep(0)
    assert await task == "through"


async def test_a_failure_in_the_first_step_or_later_is_raised() -> None:
    async def fails(wait: bool) -> None:
        if wait:
            await asyncio.sleep(0)
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        first_step(fails(wait=False))
    rest = first_step(fails(wait=True))
    assert isinstance(rest, Rest)
    with pytest.raises(ValueError, match="on purpose"):
        await rest


async def test_a_failure_of_what_is_waited_for_reaches_the_coroutine() -> None:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def catches() -> str:
        try:
            await waited
        except OSError:
            await asyncio.sleep(0)
            return "caught"
        return "not caught"

    rest = first_step(catches())
    assert isinstance(rest, Rest)
    waited.set_exception(OSError("on purpose"))
    assert await rest == "caught"


async def test_a_cancellation_reaches_the_coroutine() -> None:
    cleaned = False

    async def waits() -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            cleaned = True

    rest = first_step(waits())
    assert isinstance(rest, Rest)

    async def finish() -> None:
        await rest

    task = asyncio.ensure_future(finish())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned
