"""Where an environment is in its work: what a checkpoint adds to the author's own, and how it is set again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from atropos_tui.runtime.data_cursor import cursor_of, restore_cursor
from atropos_tui.runtime.packing import NotPlain, pack, unpack

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)

# The key of a checkpoint that is the runtime's.
PLACE = "_place"


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
    return {"cursor": cursor_of(env), "items": items}


def restore_place(env: BaseEnv, place: dict[str, Any]) -> None:
    """Go on where the checkpoint was written. What the author's `load_checkpoint` sets afterwards stands."""
    restore_cursor(env, place.get("cursor", {}))
    env.backlog.extend(unpack(item) for item in place.get("items", []))
