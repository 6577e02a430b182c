"""The screen in a real (pseudo) terminal: it leaves it usable, survives its oddities and sends it little."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pyte
import pytest

from atropos_tui.ui.terminal import x10_filter
from tests.ui.recorded_app import BUSY_SNAPSHOTS

ROOT = Path(__file__).parents[2]
COLUMNS, ROWS = 120, 40
PATIENCE = 60.0


class Terminal:
    """A pseudo terminal with the recorded app in it. `output` is all that came, `screen` what it looks like."""

    def __init__(self, *states: str, ignoring_hangup: bool = False) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.recorded_app", *states],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color"},
            preexec_fn=lambda: self._take_terminal(ignoring_hangup),
        )
        os.close(slave)
        self.output = b""
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        if self.master >= 0:
            os.close(self.master)

    def read(self, seconds: float) -> bytes:
        """What comes within the time."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the process has closed its side
            return b""
        self.output += data
        self._stream.feed(data.replace(b"\x1b[>1u", b"").replace(b"\x1b[<u", b""))
        return data

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            self.read(0.05)

    def until_shown(self, text: str) -> None:
        self.until(lambda: any(text in line for line in self.screen.display))

    def until_quiet(self) -> None:
        self.until(lambda: not self.read(0.4))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    @staticmethod
    def _take_terminal(ignoring_hangup: bool) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if ignoring_hangup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.fixture
def running() -> Iterator[Terminal]:
    with Terminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        yield terminal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_app_in_order_and_restores_the_terminal(running: Terminal, number: signal.Signals) -> None:
    running.process.send_signal(number)
    running.until(lambda: b"answer None" in running.output)
    assert running.process.wait(PATIENCE) == 0
    assert b"\x1b[?1049l" in running.output
    assert b"\x1b[?1003l" in running.output


def test_a_terminal_that_hangs_up_ends_the_app_even_where_sighup_is_ignored() -> None:
    with Terminal("running", ignoring_hangup=True) as terminal:
        terminal.until_shown("Trainer sends")
        terminal.hang_up()
        terminal.process.wait(PATIENCE)


def test_an_old_mouse_report_neither_kills_the_app_nor_types_keys(running: Terminal) -> None:
    column = ord("q")
    os.write(running.master, b"\x1b[M" + bytes([32 + 35, 32 + 120, column]) + b"\x1b[M" + bytes([32, 255, column]))
    os.write(running.master, b"3")
    running.until_quiet()
    assert running.process.poll() is None
    assert not any("Leave reverse_strings?" in line for line in running.screen.display)
    os.write(running.master, b"q")
    running.until_shown("Leave reverse_strings?")


def test_what_was_painted_bit_by_bit_is_what_would_be_painted_at_once() -> None:
    with Terminal("starting", "running", "pausing", "paused") as step_by_step, Terminal("paused") as at_once:
        for terminal in (step_by_step, at_once):
            terminal.until_shown("‖ paused")
            terminal.until_quiet()
        assert step_by_step.screen.display == at_once.screen.display


def test_a_new_size_costs_one_picture(running: Terminal) -> None:
    running.until_quiet()
    before = len(running.output)
    running.resize(COLUMNS + 5, ROWS + 3)
    running.until(lambda: b"Trainer sends" in running.output[before:])
    running.until_quiet()
    assert running.output[before:].count(b"Trainer sends") == 1


def test_a_finished_run_costs_no_byte_and_a_busy_one_few() -> None:
    with Terminal("finished") as idle, Terminal("running", "busy") as busy:
        idle.until_shown("✓ finished")
        idle.until_quiet()
        busy.until_shown("Trainer sends")
        busy.until_quiet()
        before = len(busy.output)
        busy.until_shown("that was all")
        assert (len(busy.output) - before) / BUSY_SNAPSHOTS < 700
        assert idle.read(1.5) == b""


def test_no_color_leaves_the_terminal_its_own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Terminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        terminal.until_quiet()
        cells = [cell for row in terminal.screen.buffer.values() for cell in row.values()]
        assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
        assert any(cell.reverse for cell in cells)


def test_inside_tmux_the_mouse_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    with Terminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        assert b"\x1b[?1003h" not in terminal.output


def test_capital_m_leaves_the_mouse_to_the_terminal_and_takes_it_back(running: Terminal) -> None:
    assert b"\x1b[?1003h" in running.output
    for sequence in (b"\x1b[?1003l", b"\x1b[?1003h"):
        before = len(running.output)
        os.write(running.master, b"M")
        running.until(lambda before=before, sequence=sequence: sequence in running.output[before:])  # type: ignore[misc]


def test_inside_tmux_capital_m_takes_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    with Terminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        os.write(terminal.master, b"M")
        terminal.until(lambda: b"\x1b[?1003h" in terminal.output)


@pytest.mark.parametrize("cut", [1, *range(4, 11)])
def test_mouse_reports_are_taken_out_wherever_they_are_cut(cut: int) -> None:
    without_reports = x10_filter()
    stream = b"a\x1b[M\xff\xfe\xfdb\x1b[A"
    assert without_reports(stream[:cut]) + without_reports(stream[cut:]) == b"ab\x1b[A"
