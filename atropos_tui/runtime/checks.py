"""The runtime's own filter: which scored groups go to the trainer, and why the others do not."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atropos_tui.errors import ContractError
from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.outcomes import ScoreSplit, SkipReason
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.group_content import checked_content, readable_content
from atropos_tui.runtime.group_shapes import GroupBody, body_of, expected_size, sequences_of, trainable_tokens
from atropos_tui.runtime.plain_values import kind_of
from atropos_tui.runtime.score_spread import ScoreRange, are_identical


@dataclass(frozen=True, slots=True)
class CheckedGroup:
    """A group fit for the trainer. `body` is the wire's without `env_id`; its lists are its own and hold plain numbers.

    `completion_tokens` counts the trainable tokens of each sequence, `truncated` the sequences cut by a length limit.
    """

    body: GroupBody
    content: GroupContent
    scores: tuple[float, ...]
    completion_tokens: tuple[int, ...]
    truncated: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """A group that stays here. `detail` names sequence and field; `scores` are empty where they cannot be read."""

    reason: SkipReason
    split: ScoreSplit | None = None
    detail: str = ""
    content: GroupContent | None = None
    scores: tuple[float, ...] = ()
    completion_tokens: tuple[int, ...] = ()
    truncated: int = 0


class GroupChecks:
    """Checks groups, in any thread; remembers only the range of the run's scores.

    Reasons are tried in this order: empty, wrong_group_size, malformed, no_trainable_tokens, identical_scores,
    too_long.
    """

    def __init__(self, group_size: int, ensure_scores_are_not_same: bool = True, score_tolerance: float = 1e-6) -> None:
        self._group_size = group_size
        self._ensure_scores_are_not_same = ensure_scores_are_not_same
        self._range = ScoreRange(score_tolerance)
        self._lock = threading.Lock()

    def check(
        self,
        group: object,
        *,
        group_id: int,
        item: str,
        max_token_len: int,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> CheckedGroup | Rejection:
        """Never raises. `max_token_len` is the trainer's limit, at which a sequence is too long; ≤ 0 is no limit."""
        if not isinstance(group, Mapping):
            return Rejection(SkipReason.MALFORMED, detail=f"{kind_of(group)} where a scored group is wanted")
        try:
            return self._check(
                group, group_id, item, max_token_len, max_token_len > 0 and abort_on_any_max_length_exceeded
            )
        except ContractError as error:
            detail = str(error)
        except Exception as error:  # noqa: BLE001  objects of an environment can raise anything when they are read
            detail = f"reading the group raised {describe(error)}"
        return Rejection(SkipReason.MALFORMED, detail=detail, content=_look(group, group_id, item))

    def _check(
        self, group: Mapping[str, Any], group_id: int, item: str, max_token_len: int, limit_length: bool
    ) -> CheckedGroup | Rejection:
        sequences = sequences_of(group)
        if not sequences:
            return Rejection(SkipReason.EMPTY, detail="no sequences")
        expected = expected_size(group, self._group_size)
        if len(sequences) != expected:
            detail = f"{len(sequences)} sequences where {expected} are expected"
            return Rejection(SkipReason.WRONG_GROUP_SIZE, detail=detail, content=_look(group, group_id, item))
        body = body_of(group, sequences)
        checked = _checked(group, body, group_id, item, max_token_len)
        with self._lock:
            self._range.include(checked.scores)
            return self._filter(checked, max_token_len, limit_length)

    def _filter(self, checked: CheckedGroup, max_token_len: int, limit_length: bool) -> CheckedGroup | Rejection:
        if not any(checked.completion_tokens):
            detail = "every mask of every sequence is -100, so there is nothing to train on"
            return _rejection(SkipReason.NO_TRAINABLE_TOKENS, detail, checked)
        if self._ensure_scores_are_not_same and self._has_identical_scores(checked):
            split = self._range.split(checked.scores[0])
            detail = f"all {len(checked.scores)} scores are {checked.scores[0]:.6g}"
            return _rejection(SkipReason.IDENTICAL_SCORES, detail, checked, split)
        if limit_length:
            lengths = [len(tokens) for tokens in checked.body["tokens"]]
            longest = max(lengths)
            if longest >= max_token_len:
                where = f"sequence {lengths.index(longest)} has {longest} tokens"
                detail = f"{where}; the trainer takes less than {max_token_len}"
                return _rejection(SkipReason.TOO_LONG, detail, checked)
        return checked

    def _has_identical_scores(self, checked: CheckedGroup) -> bool:
        """A group of one has no spread to have, and a signal for each token teaches whatever the scores are."""
        if len(checked.scores) == 1 or checked.body["advantages"] or checked.body["distill_logprobs"]:
            return False
        return are_identical(checked.scores, self._range.tolerance)


def _checked(group: Mapping[str, Any], body: GroupBody, group_id: int, item: str, max_token_len: int) -> CheckedGroup:
    content = checked_content(group, body, group_id=group_id, item=item)
    cut = [
        rollout.finish_reason == "length" or 0 < max_token_len <= len(rollout.tokens) for rollout in content.rollouts
    ]
    return CheckedGroup(
        body=body,
        content=content,
        scores=tuple(body["scores"]),
        completion_tokens=trainable_tokens(body["masks"]),
        truncated=sum(cut),
    )


def _rejection(reason: SkipReason, detail: str, checked: CheckedGroup, split: ScoreSplit | None = None) -> Rejection:
    return Rejection(
        reason, split, detail, checked.content, checked.scores, checked.completion_tokens, checked.truncated
    )


def _look(group: Mapping[str, Any], group_id: int, item: str) -> GroupContent | None:
    try:
        return readable_content(group, group_id=group_id, item=item)
    except Exception:  # noqa: BLE001  what made the group malformed may well raise again
        return None
