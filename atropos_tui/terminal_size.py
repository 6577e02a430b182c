"""How large the terminal is, by the terminal's own word."""

from __future__ import annotations

import os
import sys


def terminal_size() -> tuple[int, int] | None:
    """Columns and lines of the terminal that this process writes to or reads from; None where none of them tells.

    COLUMNS and LINES are not believed: shells, containers and readline put them into the environment of what they
    start, where they stay as they were when the window becomes larger.
    """
    for stream in (sys.__stderr__, sys.__stdin__, sys.__stdout__):  # the screen is drawn on the first
        try:
            columns, lines = os.get_terminal_size(stream.fileno())  # type: ignore[union-attr]  # None is an AttributeError
        except (AttributeError, ValueError, OSError):
            continue
        if columns and lines:  # a serial line says zero
            return columns, lines
    return None
