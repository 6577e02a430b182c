"""JSON values back into our frozen dataclasses.

pydantic does this too, but loading it and building its schemas takes longer than all else before the screen's first
picture. Known are str, int, float, bool, object, string enums, optional types, `tuple[X, ...]`, `tuple[X, Y]`,
`dict[K, V]` and dataclasses of these. Missing fields have their defaults, those that are not known are left out.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin

T = TypeVar("T")
Decode: TypeAlias = Callable[[Any], Any]

# As pydantic writes what JSON has no numbers for.
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})


def decoded(kind: type[T], value: Any) -> T:
    """The value as one of this type. Raises ValueError when it isn't."""
    try:
        return cast(T, _decoder(cast(Any, kind))(value))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error!r}") from error


@cache
def _decoder(kind: Any) -> Decode:
    if kind in (object, Any):
        return lambda value: value
    if kind is float:
        return _float
    if kind is int:
        return _int
    if kind in (str, bool):
        return _exactly(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (given,) = (argument for argument in arguments if argument is not type(None))
        decode = _decoder(given)
        return lambda value: None if value is None else decode(value)
    if origin is tuple:
        return _tuple(_decoder(arguments[0])) if arguments[-1] is ... else _tuple_of(*map(_decoder, arguments))
    if origin is dict:
        return _dict(*map(_decoder, arguments))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return _dataclass(cast(type[Any], kind))
    raise TypeError(f"no decoder for {kind}")


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int or value in _NO_NUMBERS:
        return float(value)
    raise ValueError(f"{value!r} is not a number")


def _int(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise ValueError(f"{value!r} is not a whole number")


def _exactly(kind: type[Any]) -> Decode:
    def decode(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"{value!r} is not a {kind.__name__}")
        return value

    return decode


def _tuple(decode: Decode) -> Decode:
    def decode_all(values: Any) -> tuple[Any, ...]:
        if type(values) is not list:
            raise ValueError(f"{values!r} is not a list")
        return tuple(map(decode, values))

    return decode_all


def _tuple_of(*decoders: Decode) -> Decode:
    def decode_each(values: Any) -> tuple[Any, ...]:
        if type(values) is not list or len(values) != len(decoders):
            raise ValueError(f"{values!r} is not a list of {len(decoders)}")
        return tuple(decode(value) for decode, value in zip(decoders, values, strict=True))

    return decode_each


def _dict(decode_key: Decode, decode: Decode) -> Decode:
    return lambda values: {decode_key(key): decode(value) for key, value in values.items()}


def _dataclass(kind: type[Any]) -> Decode:
    decoders = {field.name: _decoder_of(str(field.type), kind.__module__) for field in fields(kind)}

    def decode(values: Any) -> Any:
        known = {name: decoders[name](value) for name, value in values.items() if name in decoders}
        return kind(**known)

    return decode


@cache
def _decoder_of(annotation: str, module: str) -> Decode:
    """That of a field, by what is written in its module: hundreds of fields share some forty annotations."""
    return _decoder(eval(annotation, vars(sys.modules[module])))
