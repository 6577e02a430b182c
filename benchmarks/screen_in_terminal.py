"""The screen in a pseudo terminal, timed from outside: what a person at the keyboard would notice."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

COLUMNS, ROWS = 120, 40
PATIENCE = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")
# An installed program has its bytecode, which a source tree may lack: then its sources would be compiled at each start.
_BYTECODE = tempfile.TemporaryDirectory(prefix="bytecode-")


class ScreenInTerminal:
    """A command in a terminal of 120×40 in true colour. `received` counts the bytes that it sent."""

    def __init__(self, command: Sequence[str]) -> None:
        self.began = time.perf_counter()
        self.received = 0
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        left_out = ("NO_COLOR", "TMUX", "STY", "TEXTUAL_THEME", "PYTHONDONTWRITEBYTECODE")
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "HF_HUB_OFFLINE": "1"}
        environment["PYTHONPYCACHEPREFIX"] = _BYTECODE.name
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def wait_for(self, text: bytes) -> float:
        """Seconds from now until the text was drawn. Raises TimeoutError with what came instead."""
        asked_at = time.perf_counter()
        seen = b""
        while text not in seen:
            left = asked_at + PATIENCE - time.perf_counter()
            if left < 0 or not select.select([self._master], [], [], left)[0]:
                raise TimeoutError(f"{text!r} was not drawn; the last was {seen[-300:]!r}")
            seen += self._read()
            if self._process.poll() is not None:
                raise TimeoutError(f"it ended; the last was {seen[-300:]!r}")
        return time.perf_counter() - asked_at

    def press(self, key: bytes, until: bytes) -> float:
        """Seconds from the key until the text was drawn."""
        os.write(self._master, key)
        return self.wait_for(until)

    def watch(self, seconds: float) -> None:
        """Take what it draws for a while."""
        ends_at = time.perf_counter() + seconds
        while (left := ends_at - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                self._read()

    def cpu_seconds(self) -> float:
        """What its process has used."""
        with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _read(self) -> bytes:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side was closed: whoever reads next sees that it ended
            self._process.wait(PATIENCE)
            data = b""
        self.received += len(data)
        return data
