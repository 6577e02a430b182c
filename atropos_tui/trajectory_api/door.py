"""The door for scored groups: what comes in is checked once and leaves in the form that `/batch` hands out.

A body that is exactly right needs one parse, and its own bytes are used on. One that upstream would accept after
converting something ("1" for 1, unknown keys) is converted alike and written anew. Everything else is answered with
every problem named: the field, the sequence, the position.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from atropos_tui.trajectory_api.exactness import is_exact
from atropos_tui.trajectory_api.group import ScoredGroup, ScoreSummary
from atropos_tui.trajectory_api.http import Body
from atropos_tui.trajectory_api.plain_numbers import plain_group
from atropos_tui.trajectory_api.request_errors import BadBodyError, problem
from atropos_tui.trajectory_api.stored_json import StoredJson
from atropos_tui.trajectory_api.wire import FIELDS, ScoredData

Place = tuple[str | int, ...]
Problem = dict[str, Any]

_PER_TOKEN: Final = ("masks", "advantages", "ref_logprobs", "inference_logprobs")
_PER_SEQUENCE: Final = ("scores", "messages", "overrides", "distill_token_ids", "distill_logprobs")
_FREE_FORM: Final = ("messages", "generation_params", "overrides", "group_overrides", "images")
_REQUIRED: Final = ("tokens", "masks", "scores")
_MOST_PROBLEMS: Final = 20
_LIST: Final = TypeAdapter(list[ScoredData])


def read_plain_group(body: Body) -> list[ScoredGroup] | None:
    """The one group of `/scored_data` if it holds numbers alone and is right as it is; None proves nothing.

    Takes under a nanosecond a byte, the other readers up to ten.
    """
    plain = plain_group(body)
    if plain is None:
        return None
    batch_form = _with_all_keys(body, plain.keys)
    return [ScoredGroup(batch_form, plain.env_id, plain.sequences, plain.tokens, ScoreSummary.of(plain.scores))]


def read_any_group(body: Body) -> list[ScoredGroup]:
    """Check the body of `/scored_data`; the list has one group. Raises BadBodyError."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        # Not JSON, or JSON with NaN or infinities, which the long way names.
        return [_read_inexact_group(body)]
    if not is_exact(data):
        return [_read_inexact_group(body)]
    return [_group_of(data["tokens"], data["scores"], data.get("env_id"), _with_all_keys(body, data.keys()))]


def read_groups(body: Body) -> list[ScoredGroup]:
    """Check the body of `/scored_data_list`; one bad group refuses them all. Raises BadBodyError."""
    try:
        groups = _LIST.validate_json(body)
    except ValidationError as error:
        raise _bad_body(error, depth=1) from error
    _check(found for index, group in enumerate(groups) for found in _problems(group, (index,)))
    return [_converted(group) for group in groups]


def _read_inexact_group(body: Body) -> ScoredGroup:
    try:
        group = ScoredData.model_validate_json(body)
    except ValidationError as error:
        raise _bad_body(error, depth=0) from error
    _check(_problems(group, ()))
    return _converted(group)


def _converted(group: ScoredData) -> ScoredGroup:
    return _group_of(group.tokens, group.scores, group.env_id, _written_anew(group))


def _group_of(tokens: list[list[int]], scores: list[float], env_id: int | None, batch_form: StoredJson) -> ScoredGroup:
    return ScoredGroup(batch_form, env_id, len(tokens), sum(map(len, tokens)), ScoreSummary.of(scores))


def _with_all_keys(body: Body, present: Iterable[str]) -> StoredJson:
    """The body with the keys that it lacks appended as null."""
    end = body.rindex(b"}")
    rest = _nulls_beside(frozenset(present))
    return StoredJson.plain(memoryview(body)[:end], rest)


@lru_cache(maxsize=256)
def _nulls_beside(present: frozenset[str]) -> bytes:
    """The end of an object that has these keys: the other ones as null, and the brace."""
    return "".join(f',"{field}":null' for field in FIELDS if field not in present).encode() + b"}"


def _written_anew(data: ScoredData) -> StoredJson:
    try:
        return StoredJson.plain(orjson.dumps({field: getattr(data, field) for field in FIELDS}))
    except orjson.JSONEncodeError as error:
        raise BadBodyError([problem((), f"this group cannot be written as JSON: {error}")]) from error


def _check(problems: Iterator[Problem]) -> None:
    found = list(islice(problems, _MOST_PROBLEMS))
    if found:
        raise BadBodyError(found)


def _bad_body(error: ValidationError, depth: int) -> BadBodyError:
    """What the model found, put into words; `depth` is where the field's name stands in each place."""
    found = []
    for entry in islice(error.errors(include_url=False, include_input=False), _MOST_PROBLEMS):
        place = entry["loc"]
        words = [str(place[depth])] if len(place) > depth else []
        words += [f"sequence {place[depth + 1]}"] if len(place) > depth + 1 else []
        words += [f"position {place[depth + 2]}"] if len(place) > depth + 2 else []
        found.append(
            problem(place, ": ".join([", ".join(words), entry["msg"]] if words else [entry["msg"]]), entry["type"])
        )
    return BadBodyError(found)


def _problems(data: ScoredData, place: Place) -> Iterator[Problem]:
    """What the types leave open: lengths, messages without role or content, NaN inside free-form values."""
    if not data.tokens:
        yield problem((*place, "tokens"), "tokens: a group needs at least one sequence")
    for field in _PER_TOKEN + _PER_SEQUENCE:
        entries = getattr(data, field)
        if not entries and field not in _REQUIRED:
            continue
        if len(entries) != len(data.tokens):
            message = f"{field} has {len(entries)} entries for {len(data.tokens)} sequences of tokens"
            yield problem((*place, field), message, "length_mismatch")
        elif field in _PER_TOKEN:
            for index, (row, tokens) in enumerate(zip(entries, data.tokens, strict=True)):
                if len(row) != len(tokens):
                    message = f"{field} of sequence {index} has {len(row)} entries, its tokens {len(tokens)}"
                    yield problem((*place, field, index), message, "length_mismatch")
    for sequence, turns in enumerate(data.messages or ()):
        for turn, said in enumerate(turns):
            if "role" not in said or "content" not in said:
                sentence = f"messages of sequence {sequence}, message {turn}: it must have 'role' and 'content'"
                yield problem((*place, "messages", sequence, turn), sentence)
    for field in _FREE_FORM:
        value = getattr(data, field)
        for path, number in _non_finite(value, ()) if value else ():
            sentence = f"{field} has {number} at {'.'.join(map(str, path)) or 'the top'}, which JSON cannot carry"
            yield problem((*place, field, *path), sentence, "finite_number")


def _non_finite(value: Any, path: Place) -> Iterator[tuple[Place, float]]:
    """Every NaN or infinity inside a JSON value, with its path."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _non_finite(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _non_finite(inner, (*path, index))
