"""The body of a scored group: its fields read from what an environment gave, with every shape checked.

Fields and shapes are those of the trajectory API (atroposlib 0.4.0). A field that an environment leaves out, or fills
with None or an empty list, is null on the wire, because trainers index all of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from itertools import chain
from typing import Any, TypeVar

from atropos_tui.errors import ContractError
from atropos_tui.runtime.plain_values import (
    FLOATS,
    INTS,
    Numbers,
    kind_of,
    plain_float,
    plain_floats,
    plain_int,
    plain_ints,
    plain_list,
)
from atropos_tui.runtime.wire_messages import wire_messages

NOT_TRAINED = -100

GroupBody = dict[str, Any]

T = TypeVar("T")


def sequences_of(group: Mapping[str, Any]) -> list[Any]:
    """The token sequences, unchecked; empty for a group that is empty."""
    if not group:
        return []
    return plain_list(_required(group, "tokens"), "tokens")


def expected_size(group: Mapping[str, Any], group_size: int) -> int:
    """The number of sequences the group must have: its own override, else the environment's."""
    own = (_mapping(group, "group_overrides") or {}).get("group_size")
    return group_size if own is None else plain_int(own, "group_overrides, group_size")


def body_of(group: Mapping[str, Any], sequences: list[Any]) -> GroupBody:
    """All fields of the wire but `env_id`, as plain values. Raises ContractError with what is wrong and where."""
    tokens = [_tokens(sequence, f"tokens of sequence {index}") for index, sequence in enumerate(sequences)]
    lengths = [len(sequence) for sequence in tokens]
    masks = _rows(_required(group, "masks"), "masks", len(tokens))
    distill_ids, distill_logprobs = _distillation(group, lengths)
    return {
        "tokens": tokens,
        "masks": [
            _of_length(plain_ints(mask, f"masks of sequence {index}"), lengths[index], f"masks of sequence {index}")
            for index, mask in enumerate(masks)
        ],
        "scores": _scores(_required(group, "scores"), len(tokens)),
        "advantages": _advantages(group.get("advantages"), lengths),
        "ref_logprobs": _per_token(group.get("ref_logprobs"), "ref_logprobs", lengths),
        "inference_logprobs": _per_token(group.get("inference_logprobs"), "inference_logprobs", lengths),
        "messages": wire_messages(group.get("messages")),
        "generation_params": _mapping(group, "generation_params"),
        "overrides": _overrides(group.get("overrides"), len(tokens)),
        "group_overrides": _mapping(group, "group_overrides"),
        "images": _present(group.get("images")),
        "distill_token_ids": distill_ids,
        "distill_logprobs": distill_logprobs,
    }


def trainable_tokens(masks: list[list[int]]) -> tuple[int, ...]:
    """How many tokens of each sequence are trained on."""
    return tuple(len(mask) - mask.count(NOT_TRAINED) for mask in masks)


def _required(group: Mapping[str, Any], field: str) -> Any:
    if group.get(field) is None:
        raise ContractError(f"{field} is {'None' if field in group else 'missing'}")
    return group[field]


def _present(value: Any) -> Any:
    """None for what stands for nothing: None and an empty list, tuple or array. An empty object is something."""
    empty = hasattr(value, "__len__") and not isinstance(value, str | Mapping) and len(value) == 0
    return None if empty else value


def _mapping(group: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    value = _present(group.get(field))
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ContractError(f"{field}: {kind_of(value)} where an object is wanted")
    return dict(value)


def _rows(value: Any, field: str, count: int) -> list[Any]:
    """One entry a sequence."""
    rows = plain_list(value, field)
    if len(rows) != count:
        raise ContractError(f"{field}: {len(rows)} entries for {count} sequences")
    return rows


def _optional_rows(value: Any, field: str, count: int) -> list[Any] | None:
    """One entry a sequence, or None when no sequence has one. Raises ContractError when only some have."""
    value = _present(value)
    if value is None:
        return None
    rows = _rows(value, field, count)
    missing = [index for index, row in enumerate(rows) if _present(row) is None]
    if len(missing) == count:
        return None
    if missing:
        raise ContractError(f"{field} of sequence {missing[0]} is missing, though other sequences have it")
    return rows


def _of_length(row: list[Any], length: int, where: str) -> list[Any]:
    if len(row) != length:
        raise ContractError(f"{where}: {len(row)} entries for {length} tokens")
    return row


def _tokens(value: Any, where: str) -> list[int]:
    tokens = plain_ints(value, where)
    if not tokens:
        raise ContractError(f"{where} is empty")
    try:
        array("I", tokens)  # the quickest way to see that all are unsigned and of 32 bits
    except OverflowError:
        index, wrong = next(pair for pair in enumerate(tokens) if not 0 <= pair[1] < 2**32)
        raise ContractError(f"{where}, entry {index}: {wrong} is no token id") from None
    return tokens


def _scores(value: Any, count: int) -> list[float]:
    scores = [plain_float(row, f"score of sequence {index}") for index, row in enumerate(_rows(value, "scores", count))]
    for index, score in enumerate(scores):
        if not math.isfinite(score):
            raise ContractError(f"score of sequence {index} is {score}")
    return scores


def _per_token(value: Any, field: str, lengths: list[int]) -> list[list[float]] | None:
    """Shape [sequence][token]."""
    rows = _optional_rows(value, field, len(lengths))
    if rows is None:
        return None
    return [
        _of_length(plain_floats(row, f"{field} of sequence {index}"), lengths[index], f"{field} of sequence {index}")
        for index, row in enumerate(rows)
    ]


def _advantages(value: Any, lengths: list[int]) -> list[list[float]] | None:
    """Shape [sequence][token]; one number for a sequence stands for each of its tokens."""
    rows = _optional_rows(value, "advantages", len(lengths))
    if rows is not None and not any(_is_sequence(row) for row in rows):
        rows = [[plain_float(row, f"advantages of sequence {i}")] * lengths[i] for i, row in enumerate(rows)]
    return _per_token(rows, "advantages", lengths)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _overrides(value: Any, count: int) -> list[dict[str, Any]] | None:
    """One object a sequence; None stands for an empty one where other sequences have some."""
    value = _present(value)
    if value is None:
        return None
    rows = _rows(value, "overrides", count)
    if all(row is None for row in rows):
        return None
    for index, row in enumerate(rows):
        if row is not None and not isinstance(row, Mapping):
            raise ContractError(f"overrides of sequence {index}: {kind_of(row)} where an object is wanted")
    return [dict(row or {}) for row in rows]


def _distillation(
    group: Mapping[str, Any], lengths: list[int]
) -> tuple[list[list[list[int]]] | None, list[list[list[float]]] | None]:
    """A teacher's top ids and their logprobs, both of shape [sequence][position][k], or neither."""
    id_rows = _optional_rows(group.get("distill_token_ids"), "distill_token_ids", len(lengths))
    logprob_rows = _optional_rows(group.get("distill_logprobs"), "distill_logprobs", len(lengths))
    if id_rows is None and logprob_rows is None:
        return None, None
    if id_rows is None or logprob_rows is None:
        absent = "distill_token_ids" if id_rows is None else "distill_logprobs"
        raise ContractError(f"{absent} is missing; distill_token_ids and distill_logprobs go together")
    ids = [_positions(row, f"distill_token_ids of sequence {i}", lengths[i], INTS) for i, row in enumerate(id_rows)]
    logprobs = [
        _positions(row, f"distill_logprobs of sequence {i}", lengths[i], FLOATS) for i, row in enumerate(logprob_rows)
    ]
    for index in range(len(lengths)):
        _same_lengths(ids[index], logprobs[index], index)
    return ids, logprobs


def _positions(value: Any, where: str, length: int, numbers: Numbers[T]) -> list[list[T]]:
    """Shape [position][k]. There can be a hundred thousand positions, so plain lists are looked at all at once."""
    positions = _of_length(plain_list(value, where), length, where)
    if set(map(type, positions)) <= {list} and numbers.are_plain(list(chain.from_iterable(positions))):
        return list(map(list, positions))
    return [numbers.read(top, f"{where}, position {index}") for index, top in enumerate(positions)]


def _same_lengths(ids: list[list[int]], logprobs: list[list[float]], sequence: int) -> None:
    counts = list(map(len, ids)), list(map(len, logprobs))
    if counts[0] != counts[1]:
        position = next(index for index, pair in enumerate(zip(*counts, strict=True)) if pair[0] != pair[1])
        raise ContractError(
            f"distillation of sequence {sequence}, position {position}: "
            f"{counts[0][position]} ids and {counts[1][position]} logprobs"
        )
