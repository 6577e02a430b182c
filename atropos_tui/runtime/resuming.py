"""Where an environment is in its data: what a checkpoint adds to the author's own, and how it is set again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)

# The key of a checkpoint that is the runtime's.
PLACE = "_place"
_SHAPES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


class NotPlain(TypeError):  # noqa: N818  a property of an item
    """An item that JSON cannot keep."""


def place_of(env: BaseEnv) -> dict[str, Any]:
    """The data cursor, and the items that were taken from the data but not finished."""
    items = []
    lost = 0
    unfinished = [*env.backlog, *(running["item"] for running in env.running_items.values())]
    for item in unfinished:
        try:
            items.append(pack(item))
        except NotPlain:
            lost += 1
    if lost:
        logger.warning("a checkpoint leaves out %d unfinished items, which JSON cannot keep", lost)
    cursor = {name: getattr(env, name) for name in env.cursor_attributes if isinstance(getattr(env, name, None), int)}
    return {"cursor": cursor, "items": items}


def restore_place(env: BaseEnv, place: dict[str, Any]) -> None:
    """Go on where the checkpoint was written. What the author's `load_checkpoint` sets afterwards stands."""
    for name, value in place.get("cursor", {}).items():
        setattr(env, name, value)
    env.backlog.extend(unpack(item) for item in place.get("items", []))


def pack(value: Any) -> Any:
    """A JSON value that `unpack` turns back into an equal one, tuples and sets included. Raises NotPlain."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [pack(entry) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: pack(entry) for key, entry in value.items()}}
    for name, shape in _SHAPES.items():
        if type(value) is shape:
            return {name: [pack(entry) for entry in value]}
    raise NotPlain(type(value).__name__)


def unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [unpack(entry) for entry in value]
    if isinstance(value, dict):
        ((name, inside),) = value.items()
        if name == "dict":
            return {key: unpack(entry) for key, entry in inside.items()}
        return _SHAPES[name](unpack(entry) for entry in inside)
    return value
