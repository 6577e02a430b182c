"""Values of an environment as plain Python: numpy and torch scalars, arrays and tensors become ints, floats, lists.

Every function raises ContractError with a detail that names the field, the sequence and the entry.
Lists that are plain already cost one pass in C and a copy.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from atropos_tui.errors import ContractError

T = TypeVar("T")


def plain_list(value: object, where: str) -> list[Any]:
    """A new list of the entries of a list, tuple, array or tensor."""
    if isinstance(value, list | tuple):
        return list(value)
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        value = to_list()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return list(value)
    raise ContractError(f"{where}: {kind_of(value)} where a list is wanted", _hint(value))


def plain_ints(value: object, where: str) -> list[int]:
    """A new list of ints. Whole floats are taken as ints, since trajectory APIs do the same."""
    entries = plain_list(value, where)
    if _all_ints(entries):
        return entries
    return [plain_int(entry, f"{where}, entry {index}") for index, entry in enumerate(entries)]


def plain_floats(value: object, where: str) -> list[float]:
    """A new list of finite floats."""
    entries = plain_list(value, where)
    if _all_finite_floats(entries):
        return entries
    entries = [plain_float(entry, f"{where}, entry {index}") for index, entry in enumerate(entries)]
    for index, entry in enumerate(entries):
        if not math.isfinite(entry):
            raise ContractError(f"{where}, entry {index} is {entry}")
    return entries


def plain_int(value: object, where: str) -> int:
    scalar = _scalar(value, where)
    if isinstance(scalar, float) and scalar.is_integer():
        return int(scalar)
    try:
        return operator.index(scalar)
    except TypeError:
        raise ContractError(f"{where}: {kind_of(value)} where an int is wanted") from None


def plain_float(value: object, where: str) -> float:
    """Any real number; whether it is finite is left to the caller."""
    scalar = _scalar(value, where)
    try:
        if isinstance(scalar, str | bytes | bytearray):
            raise TypeError
        return float(scalar)
    except (TypeError, ValueError):
        raise ContractError(f"{where}: {kind_of(value)} where a number is wanted") from None
    except OverflowError:
        raise ContractError(f"{where}: an int too large for a float") from None


def kind_of(value: object) -> str:
    """How a wrong value is named in a detail."""
    if value is None:
        return "None"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _all_ints(entries: list[Any]) -> bool:
    """A sum is an int only of ints, and takes a quarter of the time of looking at each type. A boolean passes as the
    number it stands for, which is what trajectory APIs take it for."""
    try:
        return type(sum(entries)) is int
    except TypeError:
        return False


def _all_finite_floats(entries: list[Any]) -> bool:
    """In two passes in C: the sum is finite only if all of them are."""
    return set(map(type, entries)) <= {float} and math.isfinite(sum(entries))


@dataclass(frozen=True, slots=True)
class Numbers(Generic[T]):
    """How lists of one kind of number are read, and recognized as plain already."""

    read: Callable[[object, str], list[T]]
    are_plain: Callable[[list[Any]], bool]


INTS = Numbers(plain_ints, _all_ints)
FLOATS = Numbers(plain_floats, _all_finite_floats)


def _scalar(value: object, where: str) -> Any:
    """The Python scalar in a numpy scalar or a tensor of one entry; anything else as it is."""
    item = getattr(value, "item", None)
    if not callable(item):
        return value
    try:
        return item()
    except (TypeError, ValueError, RuntimeError):
        raise ContractError(f"{where}: {kind_of(value)} of several entries where one number is wanted") from None


def _hint(value: object) -> str:
    if hasattr(value, "input_ids") or (isinstance(value, Mapping) and "input_ids" in value):
        return "transformers 5 needs apply_chat_template(..., return_dict=False) to give token ids"
    return ""
