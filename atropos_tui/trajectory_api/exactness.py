"""The quick proof that a scored group is right as it is, for the many that are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from atropos_tui.trajectory_api.wire import FIELDS

_KNOWN: Final = frozenset(FIELDS)
_REQUIRED: Final = frozenset({"tokens", "masks", "scores"})
_PER_TOKEN_FLOATS: Final = ("advantages", "ref_logprobs", "inference_logprobs")
_OBJECTS: Final = ("generation_params", "group_overrides")
# Rare and deeply nested; a group that has one goes the long way.
_DISTILLATION: Final = ("distill_token_ids", "distill_logprobs")
# Values within values; trainers' parsers end at a thousand or less, and would fail at a batch that holds more.
MOST_NESTED: Final = 100
_FLAT: Final = frozenset({str, int, float, bool, type(None)})


def is_exact(data: Any) -> bool:
    """Whether the parsed group needs neither converting nor refusing. False proves nothing: the long way decides.

    A sum tells most of many numbers in one go: it is an int only of ints, finite only of finite numbers, and fails on
    anything else. It takes a boolean for 0 or 1, as every reader of the batch will; only the first of each row is
    looked at, for rows of booleans.
    """
    if type(data) is not dict or not _REQUIRED <= data.keys() <= _KNOWN:
        return False
    tokens, scores = data["tokens"], data["scores"]
    if type(tokens) is not list or not tokens or type(scores) is not list or len(scores) != len(tokens):
        return False
    try:
        return (
            all(type(row) is list for row in tokens)
            and _are_ints(tokens, tokens)
            and _are_ints(data["masks"], tokens)
            and all(type(score) is float or type(score) is int for score in scores)
            and math.isfinite(sum(scores))
            and all(_is_absent(data.get(field)) or _are_floats(data[field], tokens) for field in _PER_TOKEN_FLOATS)
            and all(data.get(field) is None or _is_shallow_object(data[field]) for field in _OBJECTS)
            and (data.get("images") is None or is_shallow([data["images"]]))
            and all(_is_absent(data.get(field)) for field in _DISTILLATION)
            and (_is_absent(data.get("messages")) or _are_messages(data["messages"], len(tokens)))
            and (_is_absent(data.get("overrides")) or _are_overrides(data["overrides"], len(tokens)))
            and (data.get("env_id") is None or type(data["env_id"]) is int)
        )
    except TypeError:
        return False


def _is_absent(value: Any) -> bool:
    """Whether an optional list is not there; upstream's `collect_trajectories` sends such ones empty."""
    return value is None or value == []


def _are_ints(rows: Any, tokens: list[list[int]]) -> bool:
    """One row a sequence, one int a token. Raises TypeError for rows that hold something else than numbers."""
    if type(rows) is not list or len(rows) != len(tokens):
        return False
    for row, sequence in zip(rows, tokens, strict=True):
        if type(row) is not list or len(row) != len(sequence) or type(sum(row)) is not int:
            return False
        if row and type(row[0]) is bool:
            return False
    return True


def _are_floats(rows: Any, tokens: list[list[int]]) -> bool:
    """One row a sequence, one finite number a token. Raises TypeError as `_are_ints`."""
    if type(rows) is not list or len(rows) != len(tokens):
        return False
    for row, sequence in zip(rows, tokens, strict=True):
        if type(row) is not list or len(row) != len(sequence) or not math.isfinite(sum(row)):
            return False
        if row and type(row[0]) is bool:
            return False
    return True


def _are_messages(conversations: Any, sequences: int) -> bool:
    if type(conversations) is not list or len(conversations) != sequences:
        return False
    if not all(type(turns) is list and all(map(_is_message, turns)) for turns in conversations):
        return False
    said = chain.from_iterable(map(dict.values, chain.from_iterable(conversations)))
    return _FLAT.issuperset(map(type, said)) or is_shallow(conversations)


def _is_message(turn: Any) -> bool:
    return type(turn) is dict and "role" in turn and "content" in turn


def _are_overrides(overrides: Any, sequences: int) -> bool:
    if type(overrides) is not list or len(overrides) != sequences:
        return False
    return all(type(entry) is dict for entry in overrides) and is_shallow(overrides)


def _is_shallow_object(value: Any) -> bool:
    return type(value) is dict and is_shallow([value])


def is_shallow(values: Iterable[Any]) -> bool:
    """Whether parsed JSON is nested less than `MOST_NESTED` deep."""
    level = values
    for _ in range(MOST_NESTED):
        nested = [value for value in level if type(value) not in _FLAT]
        if not nested:
            return True
        level = chain.from_iterable(value.values() if type(value) is dict else value for value in nested)
    return False
