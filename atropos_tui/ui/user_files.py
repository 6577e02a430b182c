"""What users may put into their configuration directory: `config.toml`, `keymap.toml` and themes in `themes/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from atropos_tui.ui.keymap import load_keymap
from atropos_tui.ui.screen_settings import ScreenSettings, load_screen_settings
from atropos_tui.ui.themes import Theme, load_theme
from atropos_tui.user_config import CONFIG_FILE


@dataclass(frozen=True, slots=True)
class UserFiles:
    """What they say; `directory` is where they were looked for, and are looked for again."""

    keymap: dict[str, str] = field(default_factory=dict)
    themes: tuple[Theme, ...] = ()
    bell: bool = False
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    directory: Path | None = None


def read_user_files(directory: Path) -> UserFiles:
    """All that is there; nothing need be. Raises UsageError for the first file that is wrong."""
    keymap = directory / "keymap.toml"
    return UserFiles(
        keymap=load_keymap(keymap) if keymap.is_file() else {},
        themes=tuple(load_theme(path) for path in theme_files(directory)),
        bell=_bell(directory / CONFIG_FILE),
        screen=load_screen_settings(directory / CONFIG_FILE),
        directory=directory,
    )


def _bell(config: Path) -> bool:
    if not config.is_file():
        return False
    from atropos_tui.monitor.alert_settings import load_alert_settings  # loading it takes a while

    return load_alert_settings(config).bell


def theme_files(directory: Path) -> list[Path]:
    return sorted((directory / "themes").glob("*.toml"))
