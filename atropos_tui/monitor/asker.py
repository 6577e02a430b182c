"""Who asks something of a run, such as `ada@login1 (screen)`: told by the client, in a header of its request.

It is what the client says of itself, for people who share a run; nothing is allowed or refused by it.
"""

from __future__ import annotations

import getpass
import os
import socket
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

from atropos_tui.monitor.bounded_text import one_line

Via: TypeAlias = Literal["", "screen", "command line"]

ASKER_HEADER = "atropos-asker"
ASKER_LENGTH = 80


def asker(via: Via = "") -> str:
    """Who runs this process, on which machine, and how it asks."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        user = f"uid {os.getuid()}"
    who = f"{user}@{socket.gethostname().partition('.')[0]}"
    return f"{who} ({via})" if via else who


def write_asker(told: str) -> str:
    """As the value of a header, which is ASCII on one line."""
    return quote(told, safe=" @()")


def read_asker(value: str) -> str:
    """What such a header says, bounded and harmless on any terminal; empty where it says nothing."""
    text = unquote(value[: 12 * ASKER_LENGTH])
    return one_line("".join(char if char.isprintable() else " " for char in text), ASKER_LENGTH)
