"""JSONL of scored groups, one object a line, as atroposlib's `data_path_to_save_groups` writes it and our runtime too.

Keys that are read: `tokens`, `masks`, `scores`, `inference_logprobs`, `ref_logprobs`, `advantages`, `messages`, and
what our runtime adds: `finish_reasons`, `score_parts`. All but `scores` may be missing or null. The messages of a
rollout are a list of objects, or one text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from atropos_tui.ledger import GroupContent, Rollout


def read_group(line: bytes, group_id: int) -> GroupContent:
    """Raises ValueError for a line that is no scored group."""
    try:
        group = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(group, dict) or not isinstance(group.get("scores"), list):
        raise ValueError("not an object with scores")
    scores = group["scores"]
    return GroupContent(group_id, "", tuple(_rollout(group, index) for index in range(len(scores))))


def write_group(rollouts: Sequence[Any]) -> dict[str, Any]:
    """The object of a line, of rollouts with the fields of `RolloutDetail`. What no rollout has is null."""

    def column(field: str) -> list[Any] | None:
        values = [list(getattr(rollout, field)) for rollout in rollouts]
        return values if any(values) else None

    return {
        "tokens": column("tokens") or [[] for _ in rollouts],
        "masks": column("masks") or [[] for _ in rollouts],
        "scores": [rollout.score for rollout in rollouts],
        "advantages": column("advantages"),
        "ref_logprobs": column("ref_logprobs"),
        "inference_logprobs": column("logprobs"),
        "messages": column("messages"),
        "finish_reasons": [rollout.finish_reason for rollout in rollouts],
    }


def _rollout(group: Mapping[str, Any], index: int) -> Rollout:
    score = _entry(group, "scores", index)
    told = _entry(group, "score_parts", index)
    parts = told if isinstance(told, dict) else {}
    reason = _entry(group, "finish_reasons", index)
    return Rollout(
        score=float(score) if _is_number(score) else None,
        tokens=_numbers(group, "tokens", index),
        masks=_numbers(group, "masks", index),
        logprobs=_numbers(group, "inference_logprobs", index),
        advantages=_numbers(group, "advantages", index),
        messages=_messages(_entry(group, "messages", index)),
        finish_reason=reason if isinstance(reason, str) else "",
        parts={name: float(part) for name, part in parts.items() if _is_number(part)}
        if isinstance(parts, dict)
        else {},
        ref_logprobs=_numbers(group, "ref_logprobs", index),
    )


def _messages(told: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(told, str):
        return ({"role": "user", "content": told},)
    if not isinstance(told, list):
        return ()
    return tuple(message if isinstance(message, dict) else {"role": "user", "content": message} for message in told)


def _entry(group: Mapping[str, Any], field: str, index: int) -> Any:
    entries = group.get(field)
    return entries[index] if isinstance(entries, list) and index < len(entries) else None


def _numbers(group: Mapping[str, Any], field: str, index: int) -> Sequence[Any]:
    entry = _entry(group, field, index)
    return entry if isinstance(entry, list) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
