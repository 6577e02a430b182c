"""A tmux of a test's own: one window with a shell in it, and clients that attach from pseudo terminals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Self

import pexpect
import pyte

from tests.end_to_end.marked_processes import MarkedProcesses, wait_until
from tests.verbs.terminal import end_child

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class TmuxServer:
    """Calling it runs a command of tmux and gives its output. After `end` nothing of it is left."""

    def __init__(self) -> None:
        self._processes = MarkedProcesses()
        self._environment = self._processes.environment | {"LC_ALL": "C.UTF-8"}
        self._environment.pop("COLORTERM", None)  # it would give more colours than `term` has
        self._directory = tempfile.mkdtemp(prefix="tmux-")  # pytest's own are too long for a socket's path
        self._output = Path(self._directory) / "output"
        self._output.touch()
        self._command = ["tmux", "-u", "-f", "/dev/null", "-S", f"{self._directory}/socket"]

    def start(self, term: str, columns: int, rows: int) -> None:
        """Open the window; `term` is what programs in it find in TERM."""
        self(
            "start-server",
            *(";", "set-option", "-g", "default-terminal", term),
            *(";", "set-option", "-g", "status", "off"),
            *(";", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(ROOT), "sh"),
            *(";", "pipe-pane", f"exec cat > {self._output}"),
        )

    def end(self) -> None:
        try:
            subprocess.run(
                [*self._command, "kill-server"], env=self._environment, capture_output=True, timeout=PATIENCE,
                check=False,
            )  # fmt: skip
            wait_until(lambda: not self._processes.alive(), within=PATIENCE)
        finally:
            for pid in self._processes.alive():
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self._directory)

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], env=self._environment, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"tmux {arguments}: {done.stderr}"
        return done.stdout

    def type(self, line: str) -> None:
        """A line for the shell."""
        self("send-keys", "-l", line)
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self("resize-window", "-x", str(columns), "-y", str(rows))

    def send_signal(self, number: signal.Signals, program: str) -> None:
        """To the process in the window that has this in its command line."""
        (pid,) = (pid for pid, command in self._processes.alive().items() if program in command)
        os.kill(pid, number)

    def says(self, variable: str) -> str:
        """What tmux knows of its window: `alternate_on`, `cursor_flag`, `mouse_any_flag`."""
        return self("display-message", "-p", f"#{{{variable}}}").strip()

    def lines(self) -> list[str]:
        """What the window shows, without the blanks at the ends."""
        return self("capture-pane", "-p").rstrip("\n").split("\n")

    def wait_for(self, text: str) -> None:
        try:
            wait_until(lambda: any(text in line for line in self.lines()), within=PATIENCE)
        except AssertionError:
            raise AssertionError(f"{text!r} never came; shown is\n" + "\n".join(self.lines())) from None

    def wait_for_note(self, text: str) -> None:
        """A text that may be gone again when one looks."""
        wait_until(lambda: text.encode() in self._output.read_bytes(), within=PATIENCE)

    def wait_for_picture(self, picture: list[str]) -> None:
        _wait_for_picture(picture, self.lines)

    def attach(self, columns: int, rows: int) -> TmuxClient:
        return TmuxClient([*self._command, "attach-session"], self._environment, columns, rows)


class TmuxClient:
    """A terminal in which tmux is attached, read as a person would."""

    def __init__(self, command: list[str], environment: dict[str, str], columns: int, rows: int) -> None:
        self.output = b""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.child = pexpect.spawn(command[0], command[1:], dimensions=(rows, columns), env=environment, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_child(self.child)

    def lines(self) -> list[str]:
        self.read()
        return [line.rstrip() for line in self._screen.display]

    def read(self) -> bytes:
        """All that has come since the beginning."""
        try:
            while True:
                data = self.child.read_nonblocking(65536, timeout=0)
                self.output += data
                self._stream.feed(data)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return self.output

    def wait_for_picture(self, picture: list[str]) -> None:
        _wait_for_picture(picture, self.lines)


def _wait_for_picture(picture: list[str], lines: Callable[[], list[str]]) -> None:
    try:
        wait_until(lambda: lines() == picture, within=PATIENCE)
    except AssertionError:
        different = "\n".join(unified_diff(picture, lines(), "expected", "shown", lineterm="", n=0))
        raise AssertionError(f"this picture never came:\n{different}") from None
