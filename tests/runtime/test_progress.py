"""Progress is one line that renews itself on a terminal, and plain lines now and then elsewhere."""

from __future__ import annotations

import io
from typing import Any

import pytest

from atropos_tui.ledger.events import CallFinished, EventBase, GroupDelivered, GroupFailed, StateChanged
from atropos_tui.runtime.progress import Progress, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(second: float, kind: type[EventBase], **fields: Any) -> EventBase:
    return kind(seq=1, mono=second, wall=second, **fields)


def delivered(second: float) -> EventBase:
    return at(second, GroupDelivered, group_id=1, reason="received", latency=0.0, attempts=1)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (750, "12:30"), (11_100, "3:05:00")])
def test_durations_read_like_a_clock(seconds: float, text: str):
    assert duration(seconds) == text


def test_the_line_has_rate_and_time_left():
    progress = Progress("process", io.StringIO(), total=100)
    for _ in range(20):
        progress.publish(delivered(0.0))
    progress.publish(at(0.0, GroupFailed, group_id=2, reason="env_error", error="x"))
    assert progress.line(10.0) == "process, 20/100 groups, 1 without a group, 0 requests, 2.0 groups/s, 0:40 left, 0:10"
    assert "20.0 groups/min" in progress.line(60.0)


def test_a_terminal_gets_one_line_that_is_written_over():
    out = Terminal()
    progress = Progress("serve", out)
    for tenth in range(100):
        progress.publish(delivered(1e9 + tenth / 10))
    progress.close()
    assert 20 < out.getvalue().count("\r") < 45
    assert out.getvalue().count("\n") == 1


def test_a_file_gets_a_line_every_ten_seconds_and_what_is_waited_for_at_once():
    out = io.StringIO()
    progress = Progress("serve", out)
    for second in range(35):
        progress.publish(delivered(1e9 + second))
    progress.publish(at(1e9 + 35, StateChanged, state="starting", waiting_for="the trainer"))
    lines = out.getvalue().splitlines()
    assert len(lines) == 5
    assert "waiting for the trainer" in lines[-1]


def test_requests_are_counted_where_nothing_else_is_known():
    progress = Progress("evaluate", io.StringIO())
    call = {"call_id": 1, "group_id": None, "server": 0, "split": "eval", "n": 1, "latency": 0.1}
    progress.publish(at(0.0, CallFinished, **call))
    assert progress.line(5.0) == "evaluate, 1 requests, 0:05"
