"""What is written to a terminal arrives, and what a lost or frozen one is sent holds nobody up."""

from __future__ import annotations

import fcntl
import os
import pty
import threading
import tty
from collections.abc import Iterator
from typing import IO

import pytest

from atropos_tui.ui.terminal_output import TerminalOutput

MORE_THAN_IT_TAKES = "x" * 1_000_000


class Pair:
    """A pseudo terminal: `stream` is the side of the application."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.stream: IO[str] = os.fdopen(slave, "w")

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        self.stream.close()
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def terminal() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def test_more_than_the_terminal_takes_at_once_arrives_whole(terminal: Pair) -> None:
    output = TerminalOutput(terminal.stream)
    writing = threading.Thread(target=output.write, args=(MORE_THAN_IT_TAKES + "é",))
    writing.start()
    came = b""
    while len(came) < len(MORE_THAN_IT_TAKES) + 2:
        came += os.read(terminal.master, 65536)
    writing.join()
    assert came.decode() == MORE_THAN_IT_TAKES + "é"


def test_the_terminal_that_others_share_goes_on_blocking(terminal: Pair) -> None:
    TerminalOutput(terminal.stream).write("x")
    assert not fcntl.fcntl(terminal.stream.fileno(), fcntl.F_GETFL) & os.O_NONBLOCK


def test_what_a_terminal_that_is_gone_is_sent_is_dropped(terminal: Pair) -> None:
    output = TerminalOutput(terminal.stream)
    terminal.hang_up()
    output.write("nobody reads this")
    output.write("nor this")


def test_a_frozen_terminal_is_waited_for_until_the_time_to_leave_is_over(terminal: Pair) -> None:
    output = TerminalOutput(terminal.stream)
    writing = threading.Thread(target=output.write, args=(MORE_THAN_IT_TAKES,))
    writing.start()
    output.end_within(0.0)
    writing.join(60.0)
    assert not writing.is_alive()
    output.write("no more is waited for")


def test_after_a_suspension_the_terminal_is_written_to_again(terminal: Pair) -> None:
    output = TerminalOutput(terminal.stream)
    output.end_within(0.0)
    output.write(MORE_THAN_IT_TAKES)
    output.begin()
    writing = threading.Thread(target=output.write, args=("here again",))
    writing.start()
    came = b""
    while not came.endswith(b"here again"):
        came += os.read(terminal.master, 65536)
    writing.join()


def test_what_is_no_terminal_is_written_to_as_it_is() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        TerminalOutput(stream).write("plain")
    assert os.read(reading, 100) == b"plain"
    os.close(reading)
