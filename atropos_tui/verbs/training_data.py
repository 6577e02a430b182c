"""Groups as data for supervised fine-tuning and for preference optimisation, as atroposlib's `sft-gen` and `dpo-gen`
write them, but from the record instead of from a live queue.

A sequence is its messages where it has some, else what all sequences of the group begin with and what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from atropos_tui.errors import UsageError
from atropos_tui.monitor.group_detail import RolloutDetail

# All tokens of a sequence as one text; empty where there is no tokenizer.
Text = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which sequences of a group are taken. `score_margin` is how far above the group's worst, or the other of its
    pair, a score must be; `most` how many sequences or pairs a group gives.
    """

    most: int = 3
    allow_negative_scores: bool = False
    score_margin: float = 0.0


def sft_rows(rollouts: Sequence[RolloutDetail], choice: Choice, text: Text) -> Iterator[dict[str, Any]]:
    """`{"messages", "score"}` or `{"prefix", "completion", "score"}` of the best sequences, best first."""
    ranked = _ranked(rollouts)
    worst = ranked[-1].score if ranked else 0.0
    shown = _Shown(ranked, text)
    for rollout in _wanted(ranked, choice)[: choice.most]:
        if choice.score_margin <= 0 or rollout.score - worst > choice.score_margin:
            yield shown.prefix() | {shown.key("messages", "completion"): shown.of(rollout), "score": rollout.score}


def dpo_rows(rollouts: Sequence[RolloutDetail], choice: Choice, text: Text) -> Iterator[dict[str, Any]]:
    """`{"pos", "neg", "score"}`, with `prefix` where there are no messages: the best beside the worst, and so on."""
    ranked = _ranked(rollouts)
    shown = _Shown(ranked, text)
    others = list(reversed(ranked))[: choice.most]
    for rollout in _wanted(ranked, choice)[: choice.most]:
        worse = next((other for other in others if other.score < rollout.score - choice.score_margin), None)
        if worse is not None:
            others.remove(worse)
            yield shown.prefix() | {"pos": shown.of(rollout), "score": rollout.score, "neg": shown.of(worse)}


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    score: float
    rollout: RolloutDetail


class _Shown:
    """What is written of the sequences of one group."""

    def __init__(self, ranked: Sequence[_Scored], text: Text) -> None:
        self._has_messages = all(scored.rollout.messages for scored in ranked)
        self._texts: dict[int, str] = {}
        self._prefix = ""
        if not self._has_messages:
            self._texts = {id(scored): _text_of(scored.rollout, text) for scored in ranked}
            self._prefix = _common_beginning(list(self._texts.values()))

    def prefix(self) -> dict[str, Any]:
        return {} if self._has_messages else {"prefix": self._prefix}

    def key(self, with_messages: str, without: str) -> str:
        return with_messages if self._has_messages else without

    def of(self, scored: _Scored) -> Any:
        if self._has_messages:
            return list(scored.rollout.messages)
        return self._texts[id(scored)][len(self._prefix) :]


def _ranked(rollouts: Sequence[RolloutDetail]) -> list[_Scored]:
    scored = [_Scored(rollout.score, rollout) for rollout in rollouts if rollout.score is not None]
    return sorted(scored, key=lambda entry: entry.score, reverse=True)


def _wanted(ranked: Sequence[_Scored], choice: Choice) -> list[_Scored]:
    return [scored for scored in ranked if choice.allow_negative_scores or scored.score > 0]


def _common_beginning(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    same = 0
    while same < len(first) and first[same] == last[same]:
        same += 1
    return first[:same]


def _text_of(rollout: RolloutDetail, text: Text) -> str:
    decoded = text(rollout.tokens)
    if not decoded and rollout.tokens:
        raise UsageError(
            "there are sequences without messages, and no tokenizer to decode them", "give --tokenizer NAME"
        )
    return decoded
