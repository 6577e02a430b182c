"""The screen in a real (pseudo) terminal: it leaves it usable, survives its oddities and sends it little."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from atropos_tui.ui.terminal import x10_filter
from tests.ui.recorded_app import BUSY_SNAPSHOTS
from tests.ui.recorded_terminal import COLUMNS, PATIENCE, ROWS, RecordedTerminal


@pytest.fixture
def running() -> Iterator[RecordedTerminal]:
    with RecordedTerminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        yield terminal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_app_in_order_and_restores_the_terminal(
    running: RecordedTerminal, number: signal.Signals
) -> None:
    running.process.send_signal(number)
    running.until(lambda: b"answer None" in running.output)
    assert running.process.wait(PATIENCE) == 0
    assert b"\x1b[?1049l" in running.output
    assert b"\x1b[?1003l" in running.output


def test_a_terminal_that_hangs_up_ends_the_app_even_where_sighup_is_ignored() -> None:
    with RecordedTerminal("running", ignoring_hangup=True) as terminal:
        terminal.until_shown("Trainer sends")
        terminal.hang_up()
        terminal.process.wait(PATIENCE)


@pytest.fixture
def frozen() -> Iterator[RecordedTerminal]:
    """Nobody reads from the terminal any more, and it was sent more than it takes."""
    with RecordedTerminal("running", quietly=True) as terminal:
        terminal.until_shown("Trainer sends")
        terminal.until_quiet()
        terminal.fill()
        yield terminal


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_takes_nothing_more_does_not_keep_the_app_from_ending(
    frozen: RecordedTerminal, number: signal.Signals
) -> None:
    frozen.process.send_signal(number)
    assert frozen.process.wait(PATIENCE) == 0


def test_a_terminal_that_thaws_shows_what_it_would_have_shown(frozen: RecordedTerminal) -> None:
    frozen.press_unseen(b"L" * 60 + b"4")
    with RecordedTerminal("running") as fresh:
        fresh.until_shown("Trainer sends")
        os.write(fresh.master, b"4")
        for terminal in (fresh, frozen):
            terminal.until_shown("▸ 4 Trainer sends")
        frozen.until(lambda: fresh.read(0.0) == b"" and frozen.screen.display == fresh.screen.display)


def test_an_app_that_was_stopped_without_a_word_takes_the_terminal_again(running: RecordedTerminal) -> None:
    running.until_quiet()
    threads, before = running.count_threads(), len(running.output)
    running.stop_without_a_word()
    os.write(running.master, b"q")
    running.process.send_signal(signal.SIGCONT)
    running.until(lambda: b"\x1b[?1049h" in running.output[before:])
    running.until(lambda: running.count_threads() <= threads)
    running.until_shown("Leave reverse_strings?")
    running.process.terminate()
    running.until(lambda: b"answer None" in running.output)
    assert running.process.wait(PATIENCE) == 0


def test_an_old_mouse_report_neither_kills_the_app_nor_types_keys(running: RecordedTerminal) -> None:
    column = ord("q")
    os.write(running.master, b"\x1b[M" + bytes([32 + 35, 32 + 120, column]) + b"\x1b[M" + bytes([32, 255, column]))
    os.write(running.master, b"3")
    running.until_quiet()
    assert running.process.poll() is None
    assert not any("Leave reverse_strings?" in line for line in running.screen.display)
    os.write(running.master, b"q")
    running.until_shown("Leave reverse_strings?")


def test_what_was_painted_bit_by_bit_is_what_would_be_painted_at_once() -> None:
    with (
        RecordedTerminal("starting", "running", "pausing", "paused") as step_by_step,
        RecordedTerminal("paused") as at_once,
    ):
        for terminal in (step_by_step, at_once):
            terminal.until_shown("‖ paused")
        at_once.until_quiet()
        step_by_step.until(lambda: step_by_step.screen.display == at_once.screen.display)


def test_a_new_size_costs_one_picture(running: RecordedTerminal) -> None:
    running.until_quiet()
    before = len(running.output)
    running.resize(COLUMNS + 5, ROWS + 3)
    running.until(lambda: b"Trainer sends" in running.output[before:])
    running.until_quiet()
    assert running.output[before:].count(b"Trainer sends") == 1


def test_a_finished_run_costs_no_byte_and_a_busy_one_few() -> None:
    with RecordedTerminal("finished") as idle, RecordedTerminal("running", "busy") as busy:
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
    with RecordedTerminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        terminal.until_quiet()
        cells = [cell for row in terminal.screen.buffer.values() for cell in row.values()]
        assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
        assert any(cell.reverse for cell in cells)


def test_inside_tmux_the_mouse_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    with RecordedTerminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        assert b"\x1b[?1003h" not in terminal.output


def test_capital_m_leaves_the_mouse_to_the_terminal_and_takes_it_back(running: RecordedTerminal) -> None:
    assert b"\x1b[?1003h" in running.output
    for sequence in (b"\x1b[?1003l", b"\x1b[?1003h"):
        before = len(running.output)
        os.write(running.master, b"M")
        running.until(lambda before=before, sequence=sequence: sequence in running.output[before:])  # type: ignore[misc]


def test_inside_tmux_capital_m_takes_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    with RecordedTerminal("running") as terminal:
        terminal.until_shown("Trainer sends")
        os.write(terminal.master, b"M")
        terminal.until(lambda: b"\x1b[?1003h" in terminal.output)


@pytest.mark.parametrize("cut", [1, *range(4, 11)])
def test_mouse_reports_are_taken_out_wherever_they_are_cut(cut: int) -> None:
    without_reports = x10_filter()
    stream = b"a\x1b[M\xff\xfe\xfdb\x1b[A"
    assert without_reports(stream[:cut]) + without_reports(stream[cut:]) == b"ab\x1b[A"
