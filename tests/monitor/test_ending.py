"""How many wishes it takes to end a worker, and what time does."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from atropos_tui.monitor import ending as module
from atropos_tui.monitor.ending import Ending, SignalPipe

LIMIT = 60.0


class Asked:
    """Stands in for a worker."""

    def __init__(self, grace: float = 60.0) -> None:
        self.stops: list[str] = []
        self.abandoned = threading.Event()
        self.ending = Ending(self.stops.append, self.abandoned.set, grace)


def test_the_first_wish_stops_the_second_hurries_the_third_ends() -> None:
    asked = Asked()
    asked.ending.ask("SIGTERM")
    assert asked.ending.asked.is_set()
    assert asked.stops == ["SIGTERM"]
    asked.ending.ask("SIGTERM again")
    assert asked.stops == ["SIGTERM", "SIGTERM again"]
    assert not asked.abandoned.is_set()
    asked.ending.ask("SIGTERM for the third time")
    assert asked.abandoned.is_set()


def test_a_run_that_does_not_end_in_its_grace_is_abandoned() -> None:
    asked = Asked(grace=0.05)
    asked.ending.ask("SIGTERM")
    assert asked.abandoned.wait(LIMIT)


def test_without_an_owner_the_run_is_told_to_hurry_at_once() -> None:
    asked = Asked()
    asked.ending.ask("the owner is gone", hurry=True)
    assert asked.stops == ["the owner is gone"] * 2
    assert not asked.abandoned.is_set()


def test_what_remains_after_a_run_has_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXIT_SECONDS", 0.05)
    asked = Asked()
    asked.ending.run_is_over(expect_exit=False)
    assert not asked.abandoned.wait(0.2)
    asked.ending.ask("stopped by the operator")
    assert asked.abandoned.wait(LIMIT)


def test_a_signal_is_heard_once_even_if_seen_twice() -> None:
    now = 100.0
    pipe = SignalPipe(monotonic=lambda: now)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    wakeup = signal.set_wakeup_fd(-1)
    try:
        pipe.install()
        os.kill(os.getpid(), signal.SIGTERM)
        assert pipe.received() == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGINT)
        assert pipe.received() == [signal.SIGINT]
        now += 1.0
        signal.set_wakeup_fd(-1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert pipe.received() == [signal.SIGTERM]
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
