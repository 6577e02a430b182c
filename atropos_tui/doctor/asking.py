"""What the terminal itself says when it is asked where its cursor stands: how wide it draws, how soon it answers."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from atropos_tui.doctor.finding import Finding, good, limited

_ANSWER = re.compile(rb"\x1b\[(\d+);(\d+)R")
_PATIENCE = 1.0
_SLOW_SECONDS = 0.1

# One cell each in everything that the screen draws; a terminal or font that takes two shifts frames and columns.
_GLYPHS = {"lines": "─│╭╯", "blocks": "█▄▁░", "dots": "⣿⡇⠤", "marks": "●◐✓✗▸∅"}


def ask_terminal() -> Iterator[Finding]:
    """Asks on standard input and output, which must be a terminal; leaves nothing on its screen."""
    with _raw(sys.stdin.fileno()):
        began = time.monotonic()
        if _column() is None:
            yield limited("answers", "the terminal does not say where its cursor is", "nothing; widths stay unknown")
            return
        yield _latency(time.monotonic() - began)
        yield from (_width(name, glyphs) for name, glyphs in _GLYPHS.items())


def _latency(seconds: float) -> Finding:
    found = f"after {1000 * seconds:.0f} ms"
    if seconds < _SLOW_SECONDS:
        return good("answers", found)
    return limited("answers", found, "a slow link: `ssh -C`, or attach with `--rate 1`")


def _width(name: str, glyphs: str) -> Finding:
    """Writes the glyphs at the beginning of the line, asks where the cursor is, and wipes them out."""
    os.write(sys.stdout.fileno(), b"\r" + glyphs.encode())
    column = _column()
    os.write(sys.stdout.fileno(), b"\r\x1b[K")
    cells = None if column is None else column - 1
    if cells == len(glyphs):
        return good(name, f"{glyphs} are one cell wide")
    found = f"{glyphs} take {cells if cells is not None else 'an unknown number of'} cells instead of {len(glyphs)}"
    return limited(name, found, "choose `ambiguous width: narrow` and a font that has them, or start with --ascii")


def _column() -> int | None:
    """Where the cursor stands, from 1; None when there is no answer."""
    os.write(sys.stdout.fileno(), b"\x1b[6n")
    heard = b""
    ends_at = time.monotonic() + _PATIENCE
    while (left := ends_at - time.monotonic()) > 0:
        if not select.select([sys.stdin], [], [], left)[0]:
            return None
        heard += os.read(sys.stdin.fileno(), 256)
        if answer := _ANSWER.search(heard):
            return int(answer[2])
    return None


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Answers come as they are, and are not echoed."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
