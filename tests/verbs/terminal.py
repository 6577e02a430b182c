"""A pseudo terminal with the application in it, read as a person would: as a screen of characters."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

from tests.end_to_end.marked_processes import wait_until

COLUMNS, ROWS = 120, 40


class Terminal:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str], directory: Path | None = None) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self.child = pexpect.spawn(
            command[0], list(command[1:]), dimensions=(ROWS, COLUMNS), env=dict(environment), timeout=60, cwd=directory
        )

    def shows(self, *texts: str) -> bool:
        """Whether all of these are on the screen, or were at a moment since it was last looked at: notes go away."""
        shown = False
        for piece in self._read():
            self._stream.feed(piece)
            shown = shown or self._has(texts)
        return shown or self._has(texts)

    def _read(self) -> Iterator[bytes]:
        """What has come, in pieces that are smaller than a picture."""
        try:
            while True:
                data = self.child.read_nonblocking(65536, timeout=0)
                yield from (data[start : start + 1024] for start in range(0, len(data), 1024))
        except (pexpect.TIMEOUT, pexpect.EOF):
            return

    def _has(self, texts: Sequence[str]) -> bool:
        picture = self._screen.display
        return all(any(text in line for line in picture) for text in texts)

    def wait_for(self, *texts: str) -> None:
        try:
            wait_until(lambda: self.shows(*texts), within=60.0)
        except AssertionError:
            raise AssertionError(f"{texts} never came; the screen is:\n" + "\n".join(self._screen.display)) from None

    def press(self, keys: str) -> None:
        self.child.send(keys)

    def wait_for_exit(self) -> int | None:
        """The exit status, None when a signal ended it."""
        self.child.expect(pexpect.EOF)
        wait_until(lambda: not self.child.isalive())
        self.child.close()
        status: int | None = self.child.exitstatus
        return status

    def end(self) -> None:
        end_child(self.child)


def end_child(child: pexpect.spawn) -> None:
    """Kill it if it still runs. pexpect by itself gives it a tenth of a second to be gone."""
    if child.isalive():
        child.kill(signal.SIGKILL)
        wait_until(lambda: not child.isalive())
    child.close()
