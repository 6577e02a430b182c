"""The user's own keys: a TOML file of command ids and keys, such as `"run.pause" = "o"`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.ui.key_names import key_named
from atropos_tui.ui.keys import COMMANDS, ON_THE_DASHBOARD, Scope, commands


def load_keymap(path: Path) -> dict[str, str]:
    """Keys by command id, in Textual's names. Raises UsageError that names the file, the command and what is wrong."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the keymap {path}: {error}", 'lines look like "run.pause" = "o"') from error
    known = {command.id for command in COMMANDS}
    keymap = {}
    for command_id, keys in _flat(raw):
        if command_id not in known:
            raise UsageError(f"keymap {path}: there is no command {command_id!r}", "the help (?) lists them all")
        if not isinstance(keys, str) or not keys.strip(", "):
            raise UsageError(f"keymap {path}: {command_id} needs keys", "for example o, or o,f5 for two")
        try:
            keymap[command_id] = ",".join(map(key_named, filter(str.strip, keys.split(","))))
        except ValueError as error:
            fault = f"keymap {path}: {command_id}: there is no key {str(error)!r}"
            raise UsageError(fault, "keys look like a, A, ?, f5, ctrl+a, space, comma") from error
    for where, scopes in {scope.value: (scope,) for scope in Scope}.items():
        _check_for_clashes(where, scopes, keymap, path)
    _check_for_clashes("the dashboard", ON_THE_DASHBOARD, keymap, path)
    return keymap


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Ids and what they are given; without quotes `run.pause` is a table `run` to TOML."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _check_for_clashes(where: str, scopes: Sequence[Scope], keymap: Mapping[str, str], path: Path) -> None:
    keys = Counter(key for command in commands(scopes) for key in keymap.get(command.id, command.keys).split(","))
    twice = next((key for key, times in keys.items() if times > 1), None)
    if twice is not None:
        raise UsageError(f"keymap {path}: {twice!r} has two meanings in {where!r}", "give one of them other keys")
