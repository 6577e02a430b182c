"""Where runs are kept."""

from __future__ import annotations

import os
from pathlib import Path


def run_root() -> Path:
    """`$ATROPOS_TUI_RUNS`, or `~/.local/state/atropos-tui/runs` (`$XDG_STATE_HOME` is honoured)."""
    if given := os.environ.get("ATROPOS_TUI_RUNS"):
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "atropos-tui" / "runs"
