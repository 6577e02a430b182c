"""When an operator wants to be told, and how: the table `[alerts]` of the user's configuration."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from atropos_tui.errors import UsageError
from atropos_tui.user_config import ALERTS_TABLE, SCREEN_TABLE

TABLE = ALERTS_TABLE


def _words(value: object) -> object:
    """A command written as one string is split as a shell would, but no shell ever sees it."""
    return tuple(shlex.split(value)) if isinstance(value, str) else value


_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Seconds = Annotated[float, Field(gt=0.0)]
_Count = Annotated[int, Field(ge=1)]


class AlertSettings(BaseModel):
    """Durations in seconds, shares from 0 to 1. What each is for stands in `docs/screen.md`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    no_progress: _Seconds = 60.0
    trainer: _Seconds = 300.0
    queue_full: _Seconds = 120.0
    outbox: _Seconds = 60.0
    zero_advantage_groups: _Count = 10
    lost_share: _Share = 0.1
    lost_groups: _Count = 3
    rejected_share: _Share = 0.5
    length_drift: Annotated[float, Field(gt=1.0)] = 2.0
    part_share: _Share = 0.9
    repetition: _Share = 0.1
    garbled: _Share = 0.1
    doubled_end: _Share = 0.05
    untrained: _Share = 0.25
    bell: bool = False
    command: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    command_timeout: _Seconds = 30.0


def load_alert_settings(path: Path) -> AlertSettings:
    """The settings in a configuration file; the defaults where there is none. Raises UsageError that names a fault."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return AlertSettings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", "docs/screen.md shows what it may hold") from error
    if unknown := sorted(set(raw) - {TABLE, SCREEN_TABLE}):
        raise UsageError(f"{path}: there is no table or key `{unknown[0]}`", f"alerts stand under [{TABLE}]")
    try:
        return AlertSettings.model_validate(raw.get(TABLE, {}))
    except (ValidationError, ValueError) as error:
        raise UsageError(f"{path}: {_fault(error)}", "docs/screen.md lists the keys of [alerts]") from error


def _fault(error: ValueError) -> str:
    """The first fault in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(map(str, (TABLE, *first["loc"])))
    if first["type"] == "extra_forbidden":
        return f"there is no `{where}`"
    return f"`{where}`: {first['msg']}"
