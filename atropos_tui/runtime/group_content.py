"""What can be shown of a group: of a checked one its plain values, of a malformed one whatever can be read.

Two extra keys of an environment, which the wire does not know, are shown as well, with one entry a rollout:
`finish_reasons` (text) and `score_parts` (the named parts of the score).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from atropos_tui.errors import ContractError
from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.runtime.group_shapes import GroupBody
from atropos_tui.runtime.plain_values import plain_float, plain_floats, plain_ints, plain_list
from atropos_tui.runtime.wire_messages import conversation_of

NOT_TOLD = 1.0

T = TypeVar("T")


def checked_content(group: Mapping[str, Any], body: GroupBody, *, group_id: int, item: str) -> GroupContent:
    """The content of a group whose `body` is checked. Its numbers have four bytes each, as all who keep them want."""
    count = len(body["tokens"])
    logprobs, advantages, messages, reference = (
        body[field] if len(body[field] or ()) == count else [()] * count
        for field in ("inference_logprobs", "advantages", "messages", "ref_logprobs")
    )
    if not body["ref_logprobs"] and body["distill_logprobs"]:
        reference = list(map(TeacherLogprobs, body["tokens"], body["distill_token_ids"], body["distill_logprobs"]))
    rollouts = tuple(
        Rollout(
            score=body["scores"][index],
            tokens=_compact("i", body["tokens"][index]),
            masks=_compact("i", body["masks"][index]),
            logprobs=_compact("f", logprobs[index]),
            advantages=_compact("f", advantages[index]),
            messages=messages[index],
            finish_reason=_finish_reason(group, index),
            parts=_parts(group, index),
            ref_logprobs=reference[index],
        )
        for index in range(count)
    )
    return GroupContent(group_id, item, rollouts)


def _compact(typecode: Any, numbers: Sequence[Any]) -> Sequence[Any]:
    try:
        return array(typecode, numbers) if numbers else numbers
    except OverflowError:
        return numbers


class TeacherLogprobs(Sequence[float]):
    """What a teacher that told its likeliest tokens gives to each token of a sequence; 1.0 where it isn't among them.

    Looked up when it is read, which is on the monitor's thread.
    """

    def __init__(
        self, tokens: Sequence[int], ids: Sequence[Sequence[int]], logprobs: Sequence[Sequence[float]]
    ) -> None:
        self._tokens = tokens
        self._ids = ids
        self._logprobs = logprobs

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> float:  # type: ignore[override]  # nobody slices it
        told = zip(self._ids[index], self._logprobs[index], strict=False)
        return next((logprob for token, logprob in told if token == self._tokens[index]), NOT_TOLD)


def readable_content(group: Mapping[str, Any], *, group_id: int, item: str) -> GroupContent:
    """Every rollout of a group that is not well-formed, with whatever of it can be read."""
    count = max(len(_entries(group, field)) for field in ("tokens", "scores", "messages"))
    rollouts = tuple(
        Rollout(
            score=_read(plain_float, _entry(group, "scores", index), None),
            tokens=_read(plain_ints, _entry(group, "tokens", index), ()),
            masks=_read(plain_ints, _entry(group, "masks", index), ()),
            logprobs=_read(plain_floats, _entry(group, "inference_logprobs", index), ()),
            advantages=_read(plain_floats, _entry(group, "advantages", index), ()),
            messages=_read(conversation_of, _entry(group, "messages", index), ()),
            finish_reason=_finish_reason(group, index),
            parts=_parts(group, index),
            ref_logprobs=_read(plain_floats, _entry(group, "ref_logprobs", index), ()),
        )
        for index in range(count)
    )
    return GroupContent(group_id, item, rollouts)


def _finish_reason(group: Mapping[str, Any], index: int) -> str:
    told = _entry(group, "finish_reasons", index)
    return told if isinstance(told, str) else ""


def _parts(group: Mapping[str, Any], index: int) -> Mapping[str, float]:
    told = _entry(group, "score_parts", index)
    if not isinstance(told, Mapping):
        return {}
    read = {str(name): _read(plain_float, part, None) for name, part in told.items()}
    return {name: part for name, part in read.items() if part is not None}


def _entries(group: Mapping[str, Any], field: str) -> Sequence[Any]:
    return _read(plain_list, group.get(field), ())


def _entry(group: Mapping[str, Any], field: str, index: int) -> Any:
    entries = _entries(group, field)
    return entries[index] if index < len(entries) else None


def _read(reader: Callable[[object, str], Any], value: object, otherwise: T) -> Any | T:
    if value is None:
        return otherwise
    try:
        return reader(value, "")
    except ContractError:
        return otherwise
