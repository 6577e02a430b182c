"""The screen needs a terminal; without one, what Textual would say is a page of its own code."""

from __future__ import annotations

import os
import sys

from atropos_tui.errors import UsageError

# Set where the screen is a browser's, whose keys and pictures go through pipes.
_DRIVER_SETTING = "TEXTUAL_DRIVER"


def require_terminal(instead: str) -> None:
    """Raises UsageError where keys or pictures would go nowhere; `instead` are the flags that do without a screen."""
    if _DRIVER_SETTING in os.environ:
        return
    # Keys are read and pictures are drawn there by Textual; standard output may well be a file.
    for name, stream in (("standard input", sys.__stdin__), ("standard error", sys.__stderr__)):
        if stream is None or not stream.isatty():
            raise UsageError(f"the screen needs a terminal, and {name} is none", instead)
