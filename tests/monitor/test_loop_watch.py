"""The author's event loop: late, held, and by which line."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from atropos_tui.monitor.loop_watch import LoopWatch

LIMIT = 60.0


@pytest.fixture
def watched_loop() -> Iterator[tuple[asyncio.AbstractEventLoop, LoopWatch]]:
    loop = asyncio.new_event_loop()
    watch = LoopWatch()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    loop.call_soon_threadsafe(watch.start, loop)
    yield loop, watch
    watch.stop()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT)
    loop.close()


def hold(released: threading.Event) -> None:
    released.wait(LIMIT)  # this line holds the loop


def observe_until_held(watch: LoopWatch) -> tuple[float, str]:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        lag, held_by = watch.observe()
        if held_by:
            return lag, held_by
        time.sleep(0.02)
    raise AssertionError("nobody holds the loop")


def test_a_loop_that_turns_is_not_late(watched_loop: tuple[asyncio.AbstractEventLoop, LoopWatch]) -> None:
    loop, watch = watched_loop
    turned = asyncio.run_coroutine_threadsafe(asyncio.sleep(0.3), loop)
    turned.result(LIMIT)
    assert watch.observe()[1] == ""


def test_the_line_of_the_author_that_holds_the_loop_is_named_while_it_does(
    watched_loop: tuple[asyncio.AbstractEventLoop, LoopWatch],
) -> None:
    loop, watch = watched_loop
    released = threading.Event()
    loop.call_soon_threadsafe(hold, released)
    try:
        lag, held_by = observe_until_held(watch)
    finally:
        released.set()
    with open(__file__, encoding="utf-8") as source:
        line = 1 + next(number for number, text in enumerate(source) if "# this line holds the loop" in text)
    assert held_by == f"{__file__}:{line} in hold"
    assert lag >= 1.0


def test_a_hold_is_remembered_for_some_seconds_and_then_forgotten() -> None:
    now = 100.0
    watch = LoopWatch(monotonic=lambda: now)
    beats = _Loop()
    watch.start(beats)  # type: ignore[arg-type]
    now += 4.0
    assert watch.observe()[0] == 3.9
    beats.turn()
    assert watch.observe()[0] == 3.9
    for _ in range(60):
        now += 0.1
        beats.turn()
    assert watch.observe() == (0.0, "")


def test_a_loop_that_has_ended_is_late_no_more() -> None:
    now = 100.0
    watch = LoopWatch(monotonic=lambda: now)
    watch.start(_Loop())  # type: ignore[arg-type]
    watch.stop()
    now += 60.0
    assert watch.observe() == (0.0, "")


class _Loop:
    """Just enough of a loop: it calls later what it was asked to."""

    def __init__(self) -> None:
        self._later: list[tuple[object, tuple[object, ...]]] = []

    def call_later(self, delay: float, callback: object, *args: object) -> None:
        self._later.append((callback, args))

    def turn(self) -> None:
        later, self._later = self._later, []
        for callback, args in later:
            callback(*args)  # type: ignore[operator]
