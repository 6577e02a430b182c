"""Contents of groups in compact form: numbers as arrays of four bytes, messages as JSON.

A Python list of token ids costs 36 bytes an id and keeps the environment's objects alive; an array costs 4.
"""

from __future__ import annotations

import json
import logging
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.bounded_text import bounded_text
from atropos_tui.monitor.group_detail import RolloutDetail

# One string a token, for a sequence of token ids.
Decode = Callable[[Sequence[int]], Sequence[str]]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UNREADABLE_LENGTH = 20_000
_PIECE_LENGTH = 1_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PackedRollout:
    score: float | None
    tokens: array[int]
    masks: array[int]
    logprobs: array[float]
    advantages: array[float]
    messages: bytes
    finish_reason: str
    parts: Mapping[str, float]
    ref_logprobs: array[float] = field(default_factory=lambda: array("f"))

    @property
    def size(self) -> int:
        """Bytes, nearly."""
        numbers = len(self.tokens) + len(self.masks) + len(self.logprobs) + len(self.advantages)
        numbers += len(self.ref_logprobs)
        return 500 + 4 * numbers + len(self.messages)

    def detail(self, decode: Decode) -> RolloutDetail:
        tokens = self.tokens.tolist()
        return RolloutDetail(
            score=self.score,
            tokens=tuple(tokens),
            pieces=_pieces(tokens, decode),
            masks=tuple(self.masks),
            logprobs=tuple(round(logprob, 6) for logprob in self.logprobs),
            advantages=tuple(round(advantage, 6) for advantage in self.advantages),
            messages=tuple(json.loads(self.messages)),
            finish_reason=self.finish_reason,
            parts=dict(self.parts),
            ref_logprobs=tuple(round(logprob, 6) for logprob in self.ref_logprobs),
        )


def pack(content: GroupContent) -> tuple[PackedRollout, ...]:
    """Never raises: what cannot be packed, in a malformed group, is kept as far as it can be read."""
    return tuple(_pack_rollout(rollout) for rollout in content.rollouts)


def trained_tokens(rollout: PackedRollout) -> int:
    """How many tokens of a rollout the trainer would learn from."""
    return len(rollout.masks) - rollout.masks.count(-100)


def _pieces(tokens: list[int], decode: Decode) -> tuple[str, ...]:
    try:
        pieces = tuple(bounded_text(piece, _PIECE_LENGTH) for piece in decode(tokens))
    except Exception as error:  # noqa: BLE001  ids that no token has, or a tokenizer of the environment's own
        logger.warning("cannot decode token ids: %r", error)
        return ()
    return pieces if len(pieces) == len(tokens) else ()


def _pack_rollout(rollout: Rollout) -> PackedRollout:
    return PackedRollout(
        score=rollout.score,
        tokens=_packed("i", rollout.tokens),
        masks=_packed("i", rollout.masks),
        logprobs=_packed("f", rollout.logprobs),
        advantages=_packed("f", rollout.advantages),
        messages=_messages_as_json(rollout.messages),
        finish_reason=bounded_text(rollout.finish_reason, 100),
        parts=dict(rollout.parts),
        ref_logprobs=_packed("f", rollout.ref_logprobs),
    )


def _packed(typecode: Any, values: Sequence[Any]) -> array[Any]:
    if isinstance(values, array) and values.typecode == typecode:
        return values
    try:
        return array(typecode, values)
    except (TypeError, OverflowError):
        return _readable_beginning(typecode, values)


def _readable_beginning(typecode: Any, values: Sequence[Any]) -> array[Any]:
    packed = array(typecode)
    for value in values:
        try:
            packed.append(value)
        except (TypeError, OverflowError):
            break
    return packed


def _messages_as_json(messages: Sequence[Mapping[str, Any]]) -> bytes:
    if not messages:
        return b"[]"
    try:
        return orjson.dumps(list(messages), default=repr, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except (TypeError, RecursionError):
        return _difficult_messages_as_json(messages)


def _difficult_messages_as_json(messages: Sequence[Mapping[str, Any]]) -> bytes:
    """For text with lone surrogates, integers of any size, values that contain themselves."""
    try:
        text = json.dumps(list(messages), default=repr, ensure_ascii=False, skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps([{"role": "unreadable", "content": repr(messages)[:_UNREADABLE_LENGTH]}], ensure_ascii=False)
    escaped = _LONE_SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)
    return escaped.encode()
