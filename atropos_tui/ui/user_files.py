"""What users may put into their configuration directory: `keymap.toml` and themes in `themes/`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from atropos_tui.ui.keymap import load_keymap
from atropos_tui.ui.themes import Theme, load_theme


@dataclass(frozen=True, slots=True)
class UserFiles:
    keymap: dict[str, str] = field(default_factory=dict)
    themes: tuple[Theme, ...] = ()


def config_directory() -> Path:
    """`$XDG_CONFIG_HOME/atropos-tui`, by default `~/.config/atropos-tui`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "atropos-tui"


def read_user_files(directory: Path) -> UserFiles:
    """All that is there; nothing need be. Raises UsageError for the first file that is wrong."""
    keymap = directory / "keymap.toml"
    return UserFiles(
        keymap=load_keymap(keymap) if keymap.is_file() else {},
        themes=tuple(load_theme(path) for path in sorted((directory / "themes").glob("*.toml"))),
    )
