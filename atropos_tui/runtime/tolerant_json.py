"""JSON of what environments put into groups: numpy and torch values, pydantic models, and things JSON has no word for.

Nothing that an environment attaches to a group may keep its tokens from the trainer, so encoding never fails: what JSON
cannot say is said as text.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
LONGEST_REPR = 1000
DEEPEST = 100


def to_json(value: Any) -> bytes:
    """Compact JSON in UTF-8. NaN and infinities become null."""
    try:
        return orjson.dumps(value, _plainer, OPTIONS)
    except (TypeError, ValueError, RecursionError):  # lone surrogates, ints beyond 64 bits, cycles, odd keys
        return orjson.dumps(_plain(value, ()), option=OPTIONS)


def _plainer(value: Any) -> Any:
    """One step towards JSON for a value that orjson does not know."""
    for method in ("model_dump", "tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            return convert()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(type(value), "__float__"):
        return float(value)
    if isinstance(value, set | frozenset) or (isinstance(value, Iterable) and hasattr(value, "__len__")):
        return list(value)
    return _text(value)


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    """A copy that orjson surely takes; `above` are the ids of the containers around, to stop at cycles."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if id(value) in above or len(above) > DEEPEST:
        return _text(value)
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {str(_plain(str(key), inside)): _plain(entry, inside) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, inside) for entry in value]
    try:
        return _plain(_plainer(value), inside)
    except Exception:  # noqa: BLE001  conversions of foreign objects can raise anything
        return _text(value)


def _text(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001  so can their repr
        text = f"<{type(value).__name__}>"
    return text[:LONGEST_REPR].encode("utf-8", "backslashreplace").decode("utf-8")
