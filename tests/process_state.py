"""What has become of a process, read from /proc."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int) -> bool:
    """A zombie is dead: in a container nobody may reap it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
