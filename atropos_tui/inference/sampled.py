"""Checks on what a server sampled, before anything is trained on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from atropos_tui.errors import InferenceError
from atropos_tui.inference.failures import RequestError, malformed
from atropos_tui.inference.results import RawFinishReason, TokenCompletion

# Servers round: a certain token's logprob may come out a hair above zero.
LARGEST_LOGPROB = 1e-3


def checked(
    url: str,
    ids: list[int],
    told_prompt: Sequence[int] | None,
    tokens: list[list[int]],
    logprobs: list[list[float]],
    reasons: list[RawFinishReason],
    versions: Sequence[int | None],
) -> TokenCompletion:
    """The answer as a TokenCompletion, if it is whole: a finite logprob for every token, a reason for every choice, and
    the prompt that was sent. Raises RequestError otherwise."""
    if told_prompt is not None and list(told_prompt) != ids:
        raise malformed(url, "for another prompt than it was sent: its prompt_token_ids differ")
    if len(reasons) != len(tokens):
        raise malformed(url, f"{len(tokens)} choices with {len(reasons)} finish reasons")
    for choice_tokens, choice_logprobs in zip(tokens, logprobs, strict=True):
        check_logprobs(url, choice_tokens, choice_logprobs)
    return TokenCompletion.of(ids, tokens, logprobs, reasons, versions)


def check_logprobs(url: str, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
    """Raises InferenceError unless there is a finite logprob, not above zero, for every token."""
    if len(logprobs) != len(tokens):
        raise _no_logprobs(f"{url} gave {len(logprobs)} logprobs for {len(tokens)} tokens")
    if not tokens or _all_are_logprobs(logprobs):
        return
    position, wrong = next((i, one) for i, one in enumerate(logprobs) if not _all_are_logprobs([one]))
    raise _no_logprobs(f"{url} gave {wrong!r} as the logprob of token {position}")


def _all_are_logprobs(values: Sequence[float]) -> bool:
    # The sum of numbers is finite exactly if all are; what is no number has none.
    try:
        return math.isfinite(sum(values)) and max(values) <= LARGEST_LOGPROB
    except TypeError:
        return False


def _no_logprobs(fault: str) -> InferenceError:
    return InferenceError(fault, "logprobs cannot be made up", kind="no_logprobs")


def prompt_logprobs(url: str, ids: list[int], positions: Any) -> dict[str, Any]:
    """vLLM's `prompt_logprobs` in upstream's normal form; see `APIServer.get_logprobs`."""
    if positions is None:
        raise RequestError(f"{url} gives no prompt_logprobs", "use a server that does, such as stock vLLM",
                            kind="no_logprobs", retry=False)  # fmt: skip
    if positions and isinstance(positions[0], list) and len(positions) == 1:
        positions = positions[0]
    try:
        topk = [[(int(token), _value(entry)) for token, entry in _pairs(position)] for position in positions]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise malformed(url, f"with prompt_logprobs that cannot be read ({error})") from error
    return topk_answer(url, ids, topk)


def topk_answer(url: str, ids: list[int], topk: Sequence[Sequence[tuple[int, float]]]) -> dict[str, Any]:
    """The answer of `APIServer.get_logprobs`. Raises RequestError unless there is one entry a token."""
    if len(topk) != len(ids):
        raise malformed(url, f"with logprobs of {len(topk)} positions for {len(ids)} tokens")
    return {
        "prompt_tokens": ids,
        "prompt_topk_token_ids": [[token for token, _ in position] for position in topk],
        "prompt_topk_logprobs": [[logprob for _, logprob in position] for position in topk],
    }


def _pairs(position: Any) -> Iterable[tuple[Any, Any]]:
    """One position as (id, value) pairs: a dict, a list of one-key dicts, or null where nothing is told."""
    if position is None:
        return []
    if isinstance(position, Mapping):
        return position.items()
    return [pair for entry in position for pair in entry.items()]


def _value(entry: Any) -> float:
    """A logprob, bare or as vLLM's `{"logprob": …, "rank": …}`."""
    return float(entry["logprob"] if isinstance(entry, Mapping) else entry)
