"""What may differ between a group of ours and the same group of atroposlib, and why; all else is unexplained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

EXPLAINED = {
    "absent": "null for what no rollout gave; atroposlib's default grouping sends `[]` and `{}`, which nothing fills",
    "added": "the key is there, null; atroposlib leaves it out",
    "float": "scores are floats, as the wire format says; the environment gave whole numbers",
    "messages": "text in the place of messages is sent as a message; the trajectory API refuses text with 422",
    "agent_header": "the header before an agent's turn is not trained on",
    "kept": "a key of the environment's own is kept; atroposlib's default grouping drops it",
    "special_tokens": "`full_text` of a node, from which messages are made, has its special tokens, as its tokens do",
    "unsent": "a key of the environment's own stays here; the trajectory API would drop it",
    "random": "an id that the environment draws at random",
}
UNEXPLAINED = "unexplained"

# The end of a turn in the template of `tokenizer`.
_END_OF_TURN = "<|im_end|>"
# The longest header of a turn, in tokens: `<|im_start|>agent\n`.
_HEADER_TOKENS = 8
_MASKED = -100


def kind_of(field: str, ours: Any, upstream: Any, *, on_the_wire: bool = False) -> str:
    """A key of EXPLAINED or UNEXPLAINED, for values that differ; a field that is not there counts as None."""
    if on_the_wire and ours is None and field not in _WIRE_FIELDS:
        return "unsent"
    return next((kind for kind, holds in _KINDS.items() if holds(field, ours, upstream)), UNEXPLAINED)


def same(ours: Any, upstream: Any) -> bool:
    """Equal, and numbers of the same type where lists of numbers are compared."""
    return bool(ours == upstream) and not _is_float("", ours, upstream)


def _is_absent(_: str, ours: Any, upstream: Any) -> bool:
    return ours is None and upstream in ([], {})


def _is_added(_: str, ours: Any, upstream: Any) -> bool:
    return ours is None and upstream is None


def _is_float(_: str, ours: Any, upstream: Any) -> bool:
    if not (isinstance(ours, list) and ours and ours == upstream):
        return False
    return all(isinstance(number, float) for number in ours) and any(isinstance(number, int) for number in upstream)


def _is_messages(field: str, ours: Any, upstream: Any) -> bool:
    return field == "messages" and ours == [[{"role": "user", "content": text}] for text in upstream or ()]


def _is_special_tokens(field: str, ours: Any, upstream: Any) -> bool:
    return field == "messages" and _without_ends(ours) == upstream


def _without_ends(value: Any) -> Any:
    if isinstance(value, str):
        return value.removesuffix(_END_OF_TURN)
    if isinstance(value, list):
        return [_without_ends(entry) for entry in value]
    return {name: _without_ends(entry) for name, entry in value.items()} if isinstance(value, dict) else value


def _is_agent_header(field: str, ours: Any, upstream: Any) -> bool:
    return field == "masks" and all(_only_headers_more(*masks) for masks in zip(ours, upstream, strict=True))


def _only_headers_more(ours: list[int], upstream: list[int]) -> bool:
    """Whether upstream trains on what we do and on a few tokens right before it."""
    if len(ours) != len(upstream) or any(
        mine not in (_MASKED, theirs) for mine, theirs in zip(ours, upstream, strict=True)
    ):
        return False
    more = 0
    for mine, theirs in zip(ours, upstream, strict=True):
        if mine != _MASKED:
            more = 0
        elif theirs != _MASKED:
            more += 1
        elif more:
            return False
        if more > _HEADER_TOKENS:
            return False
    return more == 0


def _is_kept(field: str, ours: Any, upstream: Any) -> bool:
    return upstream is None and ours is not None and field not in _WIRE_FIELDS


def _is_random(field: str, ours: Any, upstream: Any) -> bool:
    return field.endswith("uuid") and isinstance(ours, str) and isinstance(upstream, str)


_WIRE_FIELDS = (
    "tokens", "masks", "scores", "advantages", "ref_logprobs", "messages", "generation_params", "inference_logprobs",
    "overrides", "group_overrides", "images", "env_id", "distill_token_ids", "distill_logprobs",
)  # fmt: skip

_KINDS: dict[str, Callable[[str, Any, Any], bool]] = {
    "absent": _is_absent,
    "added": _is_added,
    "float": _is_float,
    "messages": _is_messages,
    "special_tokens": _is_special_tokens,
    "agent_header": _is_agent_header,
    "kept": _is_kept,
    "random": _is_random,
}
