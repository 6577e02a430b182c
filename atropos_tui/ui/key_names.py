"""Keys as people write them, in Textual's names: `?` is `question_mark`, `Ctrl+H` is `ctrl+h`, `esc` is `escape`."""

from __future__ import annotations

import unicodedata

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from atropos_tui.ui.keys import KEY_NAMES

_MODIFIERS = frozenset({"alt", "ctrl", "hyper", "meta", "shift", "super"})
_SHORT = {name: key for key, name in KEY_NAMES.items()} | {"return": "enter", "del": "delete", "ins": "insert"}


def key_named(text: str) -> str:
    """Raises ValueError for what is no key."""
    rest, plus, last = text.strip().rpartition("+")
    if plus and not last and (not rest or rest.endswith("+")):  # the key + itself, as in `+` and `ctrl++`
        rest, last = rest.removesuffix("+"), plus
    modifiers = {part.lower() for part in rest.split("+") if part}
    key = _SHORT.get(last.lower()) or (_name_of(last) if len(last) == 1 else last.lower())
    if not (key in _NAMES or (len(key) == 1 and key.isalnum())) or modifiers - _MODIFIERS:
        raise ValueError(text)
    if modifiers == {"shift"} and len(key) == 1:
        return key.upper()
    return "+".join([*sorted(modifiers), key.lower() if modifiers else key])


def _name_of(character: str) -> str:
    """Letters and digits are their own."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_NAMES = {key.value for key in Keys if key.value.isalnum()} | {_name_of(chr(code)) for code in range(ord("!"), 127)}
