"""Where users keep what is theirs: the configuration file, the keymap and the themes."""

from __future__ import annotations

import os
from pathlib import Path

CONFIG_FILE = "config.toml"
# Its tables.
ALERTS_TABLE = "alerts"
SCREEN_TABLE = "screen"


def config_directory() -> Path:
    """`$XDG_CONFIG_HOME/atropos-tui`, by default `~/.config/atropos-tui`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "atropos-tui"
