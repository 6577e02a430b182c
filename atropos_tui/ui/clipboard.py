"""Copying a text: given to the tmux that is around, or sent to the terminal as an escape sequence."""

from __future__ import annotations

import base64
import os
import subprocess

from atropos_tui.errors import UsageError

# Terminals drop longer ones without a word.
MOST_CLIPBOARD_BYTES = 74_000
_TMUX_SECONDS = 2.0


def give_to_tmux(text: str) -> bool:
    """Whether there is a tmux that took the text, as its newest buffer and for the clipboard of its terminal.

    As it is tmux that writes to the terminal, none of its settings matters (tmux 3.2, `load-buffer -w`). May block for
    two seconds.
    """
    if not os.environ.get("TMUX"):
        return False
    command = ["tmux", "load-buffer", "-w", "-"]
    encoded = text.encode("utf-8", "replace")
    try:
        given = subprocess.run(command, input=encoded, capture_output=True, timeout=_TMUX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return given.returncode == 0


def clipboard_sequence(text: str) -> str:
    """The escape sequence by which a terminal takes text into its clipboard, passed through tmux where that is around.

    Raises UsageError for texts that terminals would drop.
    """
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(encoded) > MOST_CLIPBOARD_BYTES:
        raise UsageError("this is too long for a terminal's clipboard", "write it to a file instead: Y")
    sequence = f"\x1b]52;c;{encoded}\a"
    if not os.environ.get("TMUX"):
        return sequence
    return sequence + f"\x1bPtmux;\x1b{sequence}\x1b\\"
