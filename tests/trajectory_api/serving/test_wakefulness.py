"""The loop stays awake for a moment, and no longer."""

from __future__ import annotations

import asyncio
import time

from atropos_tui.trajectory_api.serving.wakefulness import Wakefulness


async def test_it_looks_for_a_moment_after_the_last_call_and_then_sleeps() -> None:
    loop = asyncio.get_running_loop()
    wakefulness = Wakefulness(loop)
    begin = time.monotonic()
    for _ in range(3):
        wakefulness.stay()
    while wakefulness.is_looking:
        assert time.monotonic() < begin + 20
        await asyncio.sleep(0)
    assert time.monotonic() - begin >= 0.0001
    wakefulness.stay()
    assert wakefulness.is_looking
