"""Where an environment is in its data, as JSON: indexes, random generators, and datasets that tell their own state."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.packing import NotPlain, pack, unpack

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)

# What authors of environments call the index of the next item.
USUAL_NAMES = (
    "iter", "_iter", "train_iter", "index", "_index", "train_index", "item_index", "data_index", "idx", "_idx",
    "current_index", "current_idx", "current_board_index", "task_id_counter",
)  # fmt: skip


def cursor_of(env: BaseEnv) -> dict[str, Any]:
    """Those of `cursor_attributes` that are there. One that cannot be kept is told in the log.

    Under the usual names only indexes and what has a state of its own are kept: anything else was not meant.
    """
    cursor = {}
    for name in env.cursor_attributes:
        value = getattr(env, name, None)
        if value is None or (name in USUAL_NAMES and not _is_surely_a_cursor(value)):
            continue
        try:
            cursor[name] = _state_of(value)
        except NotPlain as kind:
            logger.warning(
                "a checkpoint leaves out %s.%s, for %s has no state that JSON can keep; name an index instead, or save "
                "it in save_checkpoint", type(env).__name__, name, kind,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001  the state of a dataset comes from code of its own
            logger.error("a checkpoint leaves out %s.%s: %s", type(env).__name__, name, describe(error))
    return cursor


def restore_cursor(env: BaseEnv, cursor: dict[str, Any]) -> None:
    """Set the attributes again; objects that have a state of their own are given it."""
    for name, state in cursor.items():
        try:
            _restore(env, name, state)
        except Exception as error:  # noqa: BLE001  the state of a dataset is given to code of its own
            told = describe(error)
            logger.error("cannot set %s.%s where the checkpoint was: %s", type(env).__name__, name, told)


def _is_surely_a_cursor(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or _has_state(value)


def _has_state(value: Any) -> bool:
    return isinstance(value, random.Random) or _is_numpy_generator(value) or _is_stateful(value)


def _is_stateful(value: Any) -> bool:
    """As iterable datasets of Hugging Face and stateful data loaders of torch are."""
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def _is_numpy_generator(value: Any) -> bool:
    """`numpy.random.Generator`, without importing numpy."""
    return hasattr(getattr(value, "bit_generator", None), "state")


def _state_of(value: Any) -> Any:
    if isinstance(value, random.Random):
        return {"random": pack(value.getstate())}
    if _is_numpy_generator(value):
        return {"numpy": pack(value.bit_generator.state)}
    if _is_stateful(value):
        return {"state_dict": pack(value.state_dict())}
    return pack(value)


def _restore(env: BaseEnv, name: str, state: Any) -> None:
    kind, inside = next(iter(state.items())) if isinstance(state, dict) else ("", None)
    match kind:
        case "random":
            getattr(env, name).setstate(unpack(inside))
        case "numpy":
            getattr(env, name).bit_generator.state = unpack(inside)
        case "state_dict":
            getattr(env, name).load_state_dict(unpack(inside))
        case _:
            setattr(env, name, unpack(state))
