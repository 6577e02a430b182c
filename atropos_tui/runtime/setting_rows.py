"""The merged configuration of a run as rows: name, value and where the value is from, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from atropos_tui.ledger.events import Setting
from atropos_tui.runtime.masking import plain_value

if TYPE_CHECKING:
    from atropos_tui.runtime.command_line import RunSettings

LONGEST_VALUE = 2_000
BY_CONSTRUCTOR = "the environment's code"
_WORDS = {
    "flag": "command line",
    "mode": "default of the mode",
    "config_init": "config_init",
    "default": "class default",
}


def field_sources(section: str, default: BaseModel, layers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """For each field the highest layer that has it; below all layers, the environment's own default or the class's."""
    sources = {}
    for name, field in type(default).model_fields.items():
        by_class = getattr(default, name, None) == field.get_default(call_default_factory=True)
        given = [layer for layer, values in layers.items() if name in values]
        sources[f"{section}{name}"] = given[-1] if given else "default" if by_class else "config_init"
    return sources


def setting_rows(settings: RunSettings) -> tuple[Setting, ...]:
    """Environment first, then servers, then switches. Secrets are masked."""
    return tuple(_rows(settings))


def changed_since(rows: Sequence[Setting], config: BaseModel) -> tuple[Setting, ...]:
    """The rows with the values that the environment has now: its constructor may have set others than it was given."""
    now = {f"env.{name}": _as_text(name, getattr(config, name, None)) for name in type(config).model_fields}
    return tuple(
        row
        if now.get(row.name, row.value) == row.value
        else Setting(name=row.name, value=now[row.name], source=BY_CONSTRUCTOR)
        for row in rows
    )


def _rows(settings: RunSettings) -> Iterator[Setting]:
    words = {**_WORDS, "file": Path(settings.file).name}
    sections: list[tuple[str, BaseModel]] = [("env.", settings.env)]
    for section, servers in (("openai", settings.servers), ("teacher", settings.teacher)):
        sections += server_sections(section, servers)
    for prefix, config in (*sections, ("", settings.manager)):
        for name in type(config).model_fields:
            source = settings.sources.get(f"{prefix}{name}", "")
            value = _as_text(name, getattr(config, name, None))
            yield Setting(name=f"{prefix}{name}", value=value, source=words.get(source, source))


def server_sections(section: str, servers: Any) -> list[tuple[str, BaseModel]]:
    """The prefix of each server's rows: `openai.` for one, `openai[0].` … for several."""
    if servers is None:
        return []
    if isinstance(servers, BaseModel):
        return [(f"{section}.", servers)]
    if len(servers) == 1:
        return [(f"{section}.", servers[0])]
    return [(f"{section}[{index}].", server) for index, server in enumerate(servers)]


def _as_text(name: str, value: Any) -> str:
    """As one would write it on the command line."""
    plain = plain_value(name, value)
    text = json.dumps(plain, ensure_ascii=False) if isinstance(plain, (dict, list)) else str(plain)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
