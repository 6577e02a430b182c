"""Taking a group away from the screen: to the terminal's clipboard, or into a file."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import asdict
from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.monitor.snapshot import GroupDetail, RolloutDetail

# Terminals drop longer ones without a word.
MOST_CLIPBOARD_BYTES = 74_000


def rollout_as_text(rollout: RolloutDetail) -> str:
    """The messages as plain text; the decoded tokens where there are none."""
    if not rollout.messages:
        return "".join(rollout.pieces)
    return "\n\n".join(f"{message.get('role', '?')}:\n{message.get('content') or ''}" for message in rollout.messages)


def write_group(detail: GroupDetail, directory: Path) -> Path:
    """Write the whole group as JSON into a new file. Raises UsageError when it cannot be written."""
    path = directory / f"group-{detail.row.group_id}.json"
    number = 1
    while path.exists():
        number += 1
        path = directory / f"group-{detail.row.group_id}-{number}.json"
    try:
        path.write_text(json.dumps(asdict(detail), ensure_ascii=True, indent=1, default=str), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", "start in a directory that can be written to"
        ) from error
    return path


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
