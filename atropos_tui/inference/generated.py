"""The answer of `/generate`, as upstream's vLLM server gives it.

Its logprobs are an object for each token, `[choice][position][0] = {"<id>": logprob}`. To make all these objects takes
longer than everything else that is done for a token, so the usual form is read without them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from atropos_tui.inference.failures import malformed
from atropos_tui.inference.results import RawFinishReason

# A choice without these is `[{"":}],[{"":}],…` when it has one id at each position.
_OF_NUMBERS = b"0123456789+-.eE \t\r\n"
_POSITION = b'[{"":}],'
_BRACKETS = b'[]{}"'
_COLON_TO_COMMA = bytes.maketrans(b":", b",")


class Generated(msgspec.Struct):
    """`logprobs` has the JSON of each choice. The last three come from some servers only."""

    logprobs: list[msgspec.Raw]
    finish_reasons: list[RawFinishReason]
    token_ids: list[list[int]] | None = None
    prompt_token_ids: list[int] | None = None
    weight_version: Any = None

    def sampled(self) -> list[tuple[list[int], list[float]]]:
        """Ids and logprobs of each choice; of several ids at a position, the first.

        Raises TypeError, ValueError, IndexError, AttributeError or StopIteration for anything else.
        """
        return [_flat(bytes(choice)) or _nested(bytes(choice)) for choice in self.logprobs]


_DECODER = msgspec.json.Decoder(Generated)


def read_generated(url: str, content: bytes) -> Generated:
    """Raises RequestError."""
    try:
        return _DECODER.decode(content)
    except msgspec.ValidationError as error:
        raise malformed(url, f"without logprobs as vLLM gives them ({error})") from error
    except msgspec.DecodeError as error:
        raise malformed(url, f"with broken JSON ({error})") from error


def _flat(choice: bytes) -> tuple[list[int], list[float]] | None:
    """The ids and logprobs of a choice with one id at each position; None for any other.

    Without its brackets, such a choice is one list in which ids and logprobs take turns.
    """
    frame = choice.translate(None, _OF_NUMBERS)
    count = len(frame) // len(_POSITION)
    if frame[1:-1] + b"," != _POSITION * count:
        return None
    try:
        numbers = orjson.loads(b"[%b]" % choice.translate(_COLON_TO_COMMA, _BRACKETS))
    except orjson.JSONDecodeError:
        return None
    tokens = numbers[::2]
    return (tokens, numbers[1::2]) if set(map(type, tokens)) == {int} else None


def _nested(choice: bytes) -> tuple[list[int], list[float]]:
    told = [position[0] for position in orjson.loads(choice)]
    if set(map(len, told)) - {1}:
        told = [dict([next(iter(each.items()))]) for each in told]
    return [int(token) for each in told for token in each], [logprob for each in told for logprob in each.values()]
