"""Whatever the author's code does, the call ends, and the runtime knows how."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from atropos_tui.errors import ContractError
from atropos_tui.ledger.outcomes import RequeueReason
from atropos_tui.runtime import author_calls
from atropos_tui.runtime.author_calls import AuthorCalls, Recalled
from atropos_tui.runtime.failures import RolloutTimeout
from tests.runtime.serving_parts import until


async def test_results_and_exceptions_pass_through():
    async def double(number: int) -> int:
        return 2 * number

    async def fail() -> None:
        raise KeyError("x")

    assert await AuthorCalls().run(double, 4) == 8
    with pytest.raises(KeyError):
        await AuthorCalls().run(fail)


async def test_a_function_that_is_not_async_is_an_error_of_its_author():
    def plain() -> Any:
        return 1

    with pytest.raises(TypeError):
        await AuthorCalls().run(plain)


async def test_code_that_takes_too_long_is_cancelled():
    ended = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(RolloutTimeout, match=r"longer than 0\.05 s"):
        await AuthorCalls().run(hang, limit=0.05)
    assert ended


async def test_a_recall_cancels_and_says_why():
    recalled: asyncio.Future[RequeueReason] = asyncio.get_running_loop().create_future()

    async def recall() -> None:
        recalled.set_result(RequeueReason.HARD_PAUSE)
        await asyncio.Event().wait()

    with pytest.raises(Recalled) as raised:
        await AuthorCalls().run(recall, recalled=recalled)
    assert raised.value.reason is RequeueReason.HARD_PAUSE


async def test_work_that_is_done_when_it_is_recalled_is_kept():
    recalled: asyncio.Future[RequeueReason] = asyncio.get_running_loop().create_future()

    async def finish() -> str:
        recalled.set_result(RequeueReason.HARD_PAUSE)
        return "done"

    assert await AuthorCalls().run(finish, recalled=recalled) == "done"


async def test_code_that_swallows_its_cancellation_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(author_calls, "CANCEL_GRACE", 0.05)
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("nobody reads this any more")

    calls = AuthorCalls()
    with pytest.raises(RolloutTimeout):
        await calls.run(stubborn, limit=0.01)
    assert "ignores its cancellation" in caplog.text
    release.set()
    await until(lambda: len(asyncio.all_tasks()) == 1)


@pytest.mark.parametrize(
    ("error", "words"), [(asyncio.CancelledError(), "leaked a CancelledError"), (SystemExit(3), r"sys\.exit\(3\)")]
)
async def test_what_would_end_more_than_the_call_is_contained(error: BaseException, words: str):
    async def end() -> None:
        raise error

    with pytest.raises(ContractError, match=words):
        await AuthorCalls().run(end)


async def test_our_own_cancellation_reaches_the_code_and_is_raised():
    inside, ended = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(AuthorCalls().run(hang))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 60)
