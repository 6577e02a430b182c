"""The quickest proof that a scored group is right as it is, for one that holds numbers alone, as most do.

simdjson knows the type of each number without making an object of it, which takes half of the time of a request.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any, Final

from atropos_tui.trajectory_api.exactness import MOST_NESTED
from atropos_tui.trajectory_api.http import Body
from atropos_tui.trajectory_api.wire import FIELDS

try:
    import simdjson
except ImportError:  # not built for every Python; then all groups go the longer ways
    simdjson = None  # type: ignore[assignment]

# simdjson takes memory in proportion to the text at once, fourteen times as much, and a parser keeps it. Fresh memory
# costs as much time as parsing does, so each thread has one for texts up to a size.
_LARGEST: Final = 32 * 1024 * 1024
_LARGEST_FOR_KEPT_PARSER: Final = 1024 * 1024
_KNOWN: Final = frozenset(FIELDS)
_NUMBERS: Final = frozenset({float, int})
_FLOATS: Final = ("advantages", "ref_logprobs", "inference_logprobs")
_OTHERS: Final = ("messages", "overrides", "images", "distill_token_ids", "distill_logprobs")


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.parser = simdjson.Parser() if simdjson is not None else None


_kept: Final = _OfThread()


@dataclass(frozen=True, slots=True)
class PlainGroup:
    """What queueing needs to know of a group, and the keys of its JSON."""

    keys: frozenset[str]
    sequences: int
    tokens: int
    scores: list[float]
    env_id: int | None


def plain_group(body: Body) -> PlainGroup | None:
    """The group, if its body needs neither converting nor refusing and has no lists but those of numbers.

    None proves nothing.
    """
    # A byte order mark, which simdjson skips, would stand in the middle of a batch.
    if simdjson is None or len(body) > _LARGEST or not body.startswith(b"{"):
        return None
    try:
        parser = _kept.parser if len(body) <= _LARGEST_FOR_KEPT_PARSER else simdjson.Parser()
        return _read(body, parser.parse(body))
    except (TypeError, ValueError, AttributeError, KeyError, RuntimeError):
        return None


def _read(body: Body, data: Any) -> PlainGroup | None:
    """Raises TypeError, ValueError, AttributeError, KeyError or RuntimeError for a value of another type."""
    keys = list(data.keys())
    present = {key: data[key] for key in keys}
    twice = len(present) != len(keys)
    if twice or not present.keys() <= _KNOWN or any(present.get(key) is not None for key in _OTHERS):
        return None
    lengths = _lengths(present["tokens"], "i")
    scores = present["scores"].as_list()
    floats = [field for field in _FLOATS if present.get(field) is not None]
    if _lengths(present["masks"], "i") != lengths or any(_lengths(present[field], "d") != lengths for field in floats):
        return None
    # Lists within rows of numbers would be taken for their entries; no other ones are there if none is left over.
    lists = (len(floats) + 2) * (len(lengths) + 1) + 1
    env_id = present.get("env_id")
    objects = (present.get("generation_params"), present.get("group_overrides"))
    right = (
        _has_no_more_lists(body, lists)
        and 0 < len(lengths) == len(scores)
        and _NUMBERS.issuperset(map(type, scores))
        and math.isfinite(sum(scores))
        and (env_id is None or type(env_id) is int)
        and all(found is None or _is_shallow_object(found) for found in objects)
    )
    return PlainGroup(frozenset(keys), len(lengths), sum(lengths), scores, env_id) if right else None


def _is_shallow_object(value: Any) -> bool:
    """Whether it is an object that, without lists in it, is nested no deeper than all readers of the batch can read."""
    # Bytes, whatever its stub says.
    return isinstance(value, simdjson.Object) and value.mini.count(b"{") < MOST_NESTED  # type: ignore[arg-type]


def _has_no_more_lists(body: Body, known: int) -> bool:
    """Whether a text with so many lists has no bracket more. Ten times faster than to count them."""
    at = -1
    for _ in range(known):
        at = body.find(b"[", at + 1)
    return body.find(b"[", at + 1) < 0


def _lengths(rows: Any, kind: str) -> list[int]:
    """The lengths of lists, all of whose entries must be integers ("i") or numbers of any kind ("d")."""
    rows.as_buffer(of_type=kind)
    return list(map(len, rows))
