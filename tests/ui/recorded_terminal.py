"""The recorded app in a pseudo terminal."""

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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import pyte

from tests.end_to_end.marked_processes import wait_until

ROOT = Path(__file__).parents[2]
COLUMNS, ROWS = 120, 40
PATIENCE = 60.0


class RecordedTerminal:
    """A pseudo terminal with the recorded app in it. `output` is all that came, `screen` what it looks like.

    `quietly`: what the app prints when it has ended doesn't go to the terminal.
    """

    def __init__(self, *states: str, ignoring_hangup: bool = False, quietly: bool = False) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.recorded_app", *states],
            stdin=slave,
            stdout=subprocess.DEVNULL if quietly else slave,
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
        """Until the app has nothing left to do: it is asleep for a while, and nothing comes from it.

        An app that only has to wait for the processor is silent too, but not asleep.
        """
        calm = 0

        def is_calm() -> bool:
            nonlocal calm
            calm = calm + 1 if not self.read(0.05) and self._is_asleep() else 0
            return calm == 8

        self.until(is_calm)

    def stop_without_a_word(self) -> None:
        """SIGSTOP, which no program can catch; it has stopped when this returns."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def count_threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def fill(self) -> None:
        """Have pictures painted, and read none of them, until the terminal takes nothing more."""
        sent, before = self._sent_bytes(), -1
        while sent > before:
            os.write(self.master, b"L")
            before, sent = sent, self._sent_bytes_when_quiet()

    def press_unseen(self, keys: bytes) -> None:
        """One key after another, without reading what becomes of it: that it costs the app time has to do."""
        for key in keys:
            before = self._nanoseconds_of_work()
            os.write(self.master, bytes([key]))
            wait_until(lambda before=before: self._nanoseconds_of_work() > before + 3e6)  # type: ignore[misc]

    def _is_asleep(self) -> bool:
        """Whether each of its threads waits for something, and none for the processor."""
        with suppress(FileNotFoundError):  # a thread may end meanwhile
            threads = [(task / "stat").read_text() for task in Path(f"/proc/{self.process.pid}/task").iterdir()]
            return all(thread.rpartition(")")[2].split()[0] == "S" for thread in threads)
        return False

    def _sent_bytes(self) -> int:
        counters = Path(f"/proc/{self.process.pid}/io").read_text()
        return int(counters.split("wchar: ")[1].split()[0])

    def _sent_bytes_when_quiet(self) -> int:
        sent, since = self._sent_bytes(), time.monotonic()

        def is_quiet() -> bool:
            nonlocal sent, since
            if (now := self._sent_bytes()) != sent or not self._is_asleep():
                sent, since = now, time.monotonic()
            return time.monotonic() - since > 0.5

        wait_until(is_quiet, within=PATIENCE)
        return sent

    def _nanoseconds_of_work(self) -> int:
        """Of the main thread, which has the event loop."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0])

    @staticmethod
    def _take_terminal(ignoring_hangup: bool) -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if ignoring_hangup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
