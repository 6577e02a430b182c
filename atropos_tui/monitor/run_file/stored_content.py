"""The rollouts of a group as two blobs: the text that people read, and the arrays of numbers.

`text` is a JSON array with one object a rollout. `arrays` are the arrays of each rollout, one after the other, four
bytes a number; `text` has their lengths, with a fifth where there are logprobs of a reference. A mask as long as its
tokens is stored XORed with them: that leaves zeros where the mask repeats the token, which compress to nothing. All
rollouts of a group are compressed together, because they share their prompt.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from atropos_tui.monitor.packed_content import PackedRollout
from atropos_tui.monitor.run_file.compression import Compressor, decompress

_ITEM = 4


@dataclass(frozen=True, slots=True)
class StoredContent:
    """`text` and `arrays` are compressed; `arrays` is None when they are not kept."""

    text: bytes
    arrays: bytes | None

    @property
    def size(self) -> int:
        return len(self.text) + len(self.arrays or b"")


def store(rollouts: Sequence[PackedRollout], compressor: Compressor, *, with_arrays: bool) -> StoredContent:
    told = [
        {
            "score": rollout.score,
            "finish_reason": rollout.finish_reason,
            "parts": rollout.parts,
            "lengths": [len(numbers) for numbers in _arrays_of(rollout)],
            "messages": orjson.Fragment(rollout.messages),
        }
        for rollout in rollouts
    ]  # fmt: skip
    text = orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    arrays = b"".join(_bytes_of(rollouts)) if with_arrays else None
    return StoredContent(compressor.compress(text), compressor.compress(arrays) if arrays is not None else None)


def restore(text: bytes, arrays: bytes | None) -> tuple[PackedRollout, ...]:
    """What was stored, without arrays where these were not kept. Raises ValueError for damaged blobs."""
    numbers = decompress(arrays) if arrays is not None else None
    rollouts = []
    at = 0
    for told in json.loads(decompress(text)):
        lengths = told["lengths"]
        pieces: list[array[Any]] = []
        for typecode, length in zip("iifff"[: len(lengths)], lengths, strict=True):
            piece: array[Any] = array(typecode)
            if numbers is not None:
                piece.frombytes(numbers[at : at + _ITEM * length])
                at += _ITEM * length
            pieces.append(piece)
        tokens, masks, logprobs, advantages, *reference = pieces
        rollouts.append(
            PackedRollout(
                score=told["score"],
                tokens=tokens,
                masks=_xor(tokens, masks),
                logprobs=logprobs,
                advantages=advantages,
                messages=json.dumps(told["messages"], ensure_ascii=False).encode(),
                finish_reason=told["finish_reason"],
                parts=told["parts"],
                ref_logprobs=reference[0] if reference else array("f"),
            )
        )
    return tuple(rollouts)


def searchable_text(rollouts: Sequence[PackedRollout], most: int) -> str:
    """What all messages say, each text once however many rollouts share it, cut at `most` characters."""
    texts: dict[str, None] = {}
    for rollout in rollouts:
        for message in json.loads(rollout.messages):
            texts.update(dict.fromkeys(_texts_of(message)))
    return "\n".join(texts)[:most]


def _texts_of(value: Any) -> Iterator[str]:
    """The strings of a message, save its role; tool calls and parts of content have theirs deeper down."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for entry in value:
            yield from _texts_of(entry)
    elif isinstance(value, dict):
        for name, entry in value.items():
            if name not in ("role", "type", "id"):
                yield from _texts_of(entry)


def _bytes_of(rollouts: Sequence[PackedRollout]) -> Iterator[bytes]:
    for rollout in rollouts:
        tokens, masks, *others = _arrays_of(rollout)
        yield tokens.tobytes()
        yield _xor(tokens, masks).tobytes()
        yield from (numbers.tobytes() for numbers in others)


def _arrays_of(rollout: PackedRollout) -> list[array[Any]]:
    arrays: list[array[Any]] = [rollout.tokens, rollout.masks, rollout.logprobs, rollout.advantages]
    return [*arrays, rollout.ref_logprobs] if rollout.ref_logprobs else arrays


def _xor(tokens: array[int], masks: array[int]) -> array[int]:
    """Its own inverse; masks of another length stay as they are."""
    if len(tokens) != len(masks):
        return masks
    both = int.from_bytes(tokens.tobytes(), "little") ^ int.from_bytes(masks.tobytes(), "little")
    return array("i", both.to_bytes(_ITEM * len(masks), "little"))
