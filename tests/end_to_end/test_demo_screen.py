"""The demo on a real terminal: keys work, and however it ends, no process is left."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pexpect
import pyte
import pytest

from tests.end_to_end.marked_processes import MarkedProcesses, wait_until
from tests.verbs.terminal import end_child

COLUMNS, ROWS = 120, 40


class Terminal:
    """A pseudo terminal with the application in it, read as a person would: as a screen of characters."""

    def __init__(self, processes: MarkedProcesses, *flags: str) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.child = pexpect.spawn(
            sys.executable, ["-m", "atropos_tui", "demo", *flags], dimensions=(ROWS, COLUMNS), timeout=60,
            env=processes.environment,
        )  # fmt: skip

    def shows(self, text: str) -> bool:
        """Whether the text is on the screen now."""
        try:
            while True:
                self._stream.feed(self.child.read_nonblocking(65536, timeout=0))
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            pytest.fail(f"the application ended:\n{self.picture}")
        return any(text in line for line in self._screen.display)

    @property
    def picture(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def hang_up(self) -> None:
        """Close our side, as when an SSH connection breaks."""
        self.child.ptyproc.fileobj.close()

    def press(self, keys: str) -> None:
        self.child.send(keys)


@pytest.fixture
def terminal(processes: MarkedProcesses) -> Iterator[Terminal]:
    terminal = Terminal(processes)
    yield terminal
    end_child(terminal.child)


def wait_for_screen(terminal: Terminal, *texts: str) -> None:
    try:
        wait_until(lambda: all(terminal.shows(text) for text in texts), within=90.0)
    except AssertionError:
        pytest.fail(f"the screen never showed {texts}:\n{terminal.picture}")


def test_keys_pause_resume_open_a_group_and_quit(terminal: Terminal, processes: MarkedProcesses) -> None:
    wait_for_screen(terminal, "running", "Scores")
    wait_until(lambda: len(processes.alive()) == 5)
    terminal.press("p")
    wait_for_screen(terminal, "‖ paused", "(screen): nothing starts until it is resumed")
    terminal.press("r")
    wait_for_screen(terminal, "running")
    terminal.press("F")
    wait_for_screen(terminal, "Fleet", " alive", "●  reverse")
    terminal.press("\x1b")
    wait_for_screen(terminal, "Scores")
    terminal.press("q")
    wait_for_screen(terminal, "Leave")
    terminal.press("s")
    terminal.child.expect(pexpect.EOF)
    wait_until(lambda: not processes.alive())


def test_several_tasks_begin_with_the_list_of_their_runs(processes: MarkedProcesses) -> None:
    terminal = Terminal(processes, "--envs", "reverse,sort", "--ascii", "--theme", "midnight", "--rate", "4")
    try:
        wait_for_screen(terminal, "Fleet", "reverse", "sort", "2 alive")
        terminal.press("\r")
        wait_for_screen(terminal, "Scores", "running")
        assert terminal.picture.isascii()
        terminal.press("\x1b")
        wait_for_screen(terminal, "Fleet")
        terminal.press("q")
        wait_for_screen(terminal, "Leave demo?")
        terminal.press("s")
        terminal.child.expect(pexpect.EOF)
        wait_until(lambda: not processes.alive())
    finally:
        end_child(terminal.child)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_process(terminal: Terminal, processes: MarkedProcesses, end: signal.Signals) -> None:
    wait_for_screen(terminal, "running")
    terminal.child.kill(end)
    wait_until(lambda: not processes.alive())


def test_a_closed_terminal_leaves_no_process(terminal: Terminal, processes: MarkedProcesses) -> None:
    wait_for_screen(terminal, "running")
    terminal.hang_up()
    wait_until(lambda: not processes.alive())
