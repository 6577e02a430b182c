"""How the screen looks by default: the table `[screen]` of the user's configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from atropos_tui.errors import UsageError
from atropos_tui.user_config import SCREEN_TABLE


class ScreenSettings(NamedTuple):
    """`ascii_only` (in the file: `ascii`) None: as the environment and the locale say."""

    ascii_only: bool | None = None


def load_screen_settings(path: Path) -> ScreenSettings:
    """The settings in a configuration file; the defaults where there is none. Raises UsageError that names a fault."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get(SCREEN_TABLE, {})
    except FileNotFoundError:
        return ScreenSettings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"cannot read {path}: {error}", f"lines under [{SCREEN_TABLE}] look like ascii = true"
        ) from error
    if not isinstance(table, dict) or set(table) - {"ascii"} or not isinstance(table.get("ascii", False), bool):
        raise UsageError(f"{path}: [{SCREEN_TABLE}] can hold nothing but ascii = true or false", "correct it")
    return ScreenSettings(table.get("ascii"))
