"""Values that JSON keeps so that they come back equal: tuples, sets and mappings with any plain keys included."""

from __future__ import annotations

from typing import Any

_SHAPES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


class NotPlain(TypeError):  # noqa: N818  a property of a value
    """A value that JSON cannot keep."""


def pack(value: Any) -> Any:
    """A JSON value that `unpack` turns back into an equal one. Raises NotPlain with the name of the type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [pack(entry) for entry in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {"dict": {key: pack(entry) for key, entry in value.items()}}
        return {"pairs": [[pack(key), pack(entry)] for key, entry in value.items()]}
    for name, shape in _SHAPES.items():
        if type(value) is shape:
            return {name: [pack(entry) for entry in value]}
    raise NotPlain(type(value).__name__)


def unpack(value: Any) -> Any:
    """The value that was packed."""
    if isinstance(value, list):
        return [unpack(entry) for entry in value]
    if isinstance(value, dict):
        ((name, inside),) = value.items()
        if name == "dict":
            return {key: unpack(entry) for key, entry in inside.items()}
        if name == "pairs":
            return {unpack(key): unpack(entry) for key, entry in inside}
        return _SHAPES[name](unpack(entry) for entry in inside)
    return value
