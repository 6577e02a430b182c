"""A pseudo terminal with the application in it, read as a person would: as a screen of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def shows(self, text: str) -> bool:
        """Whether the text is on the screen now."""
        try:
            while True:
                self._stream.feed(self.child.read_nonblocking(65536, timeout=0))
        except (pexpect.TIMEOUT, pexpect.EOF):
            pass
        return any(text in line for line in self._screen.display)

    def wait_for(self, *texts: str) -> None:
        try:
            wait_until(lambda: all(self.shows(text) for text in texts), within=60.0)
        except AssertionError:
            raise AssertionError(f"{texts} never came; the screen is:\n" + "\n".join(self._screen.display)) from None

    def press(self, keys: str) -> None:
        self.child.send(keys)

    def wait_for_exit(self) -> int | None:
        """The exit status, None when a signal ended it."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        status: int | None = self.child.exitstatus
        return status
