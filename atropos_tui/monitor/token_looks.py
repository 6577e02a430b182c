"""A cheap look at some rollouts: replies in circles, noise, an end of turn that stands twice, lost reasoning.

All are hints, found without a tokenizer: the end-of-turn token is the one with which most replies end, and where far
fewer tokens are trained on than the text must have, some was lost on the way, usually by a chat template.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.snapshot import TokenLooks

# Looking costs time that the environment's own thread lacks, so it is done to some groups a second only.
SECONDS_BETWEEN_LOOKS = 0.5
ROLLOUTS_A_GROUP = 4
REMEMBERED_ROLLOUTS = 128
TAIL = 256
# A shorter reply repeats itself for good reasons.
SHORTEST_LOOP = 64
GRAM = 4
# In running text nine of ten sequences of four tokens are different ones.
LEAST_DIFFERENT = 0.3
END_SHARE = 0.5
# A reply of a model that knows its language has -0.2 to -2; a uniform choice among 100,000 tokens has -11.5.
NOISE_LOGPROB = -5.0
SHORTEST_NOISE = 32
BROKEN_SHARE = 0.05
_BROKEN = ("\ufffd", *(chr(code) for code in range(32) if chr(code) not in "\t\n\r"))
NOT_TRAINED = -100
# No tokenizer has tokens of so many characters on average; shorter replies say nothing.
MOST_CHARACTERS_A_TOKEN = 10
LONG_REPLY = 100


@dataclass(frozen=True, slots=True)
class _Look:
    group_id: int
    last: int
    doubled: frozenset[int]
    repetitive: bool
    untrained: bool
    garbled: bool
    mean_logprob: float | None


class TokenLookout:
    """Remembers the newest rollouts that were looked at."""

    def __init__(self) -> None:
        self._looks: deque[_Look] = deque(maxlen=REMEMBERED_ROLLOUTS)
        self._looked_at: float | None = None

    def take(self, content: GroupContent, mono: float) -> bool:
        """Look at a group, unless the last look was a moment ago; whether it was looked at."""
        if self._looked_at is not None and mono - self._looked_at < SECONDS_BETWEEN_LOOKS:
            return False
        looks = [look for rollout in content.rollouts[:ROLLOUTS_A_GROUP] if (look := _look(content.group_id, rollout))]
        if looks:
            self._looked_at = mono
            self._looks.extend(looks)
        return bool(looks)

    def section(self) -> TokenLooks:
        looks = self._looks
        if not looks:
            return TokenLooks()
        end, ends = Counter(look.last for look in looks).most_common(1)[0]
        doubled = [look for look in looks if end in look.doubled] if ends >= END_SHARE * len(looks) else []
        repetitive = [look for look in looks if look.repetitive]
        untrained = [look for look in looks if look.untrained]
        garbled = [look for look in looks if look.garbled]
        logprobs = [look.mean_logprob for look in looks if look.mean_logprob is not None]
        return TokenLooks(
            rollouts=len(looks),
            repetitive=len(repetitive),
            repetitive_group=repetitive[-1].group_id if repetitive else -1,
            end_token=end if doubled else -1,
            doubled_end=len(doubled),
            doubled_end_group=doubled[-1].group_id if doubled else -1,
            untrained=len(untrained),
            untrained_group=untrained[-1].group_id if untrained else -1,
            garbled=len(garbled),
            garbled_group=garbled[-1].group_id if garbled else -1,
            mean_logprob=round(fmean(logprobs), 3) if logprobs else None,
        )


def _look(group_id: int, rollout: Rollout) -> _Look | None:
    """None for a rollout without trained tokens."""
    tokens, masks = rollout.tokens[-TAIL:], rollout.masks[-TAIL:]
    if len(tokens) != len(masks):
        return None
    trained = [token for token, mask in zip(tokens, masks, strict=True) if mask != NOT_TRAINED]
    if not trained:
        return None
    doubled = frozenset(token for token, following in pairwise(tokens) if token == following)
    logprob = _mean_logprob(rollout.logprobs[-TAIL:], masks)
    return _Look(
        group_id=group_id,
        last=trained[-1],
        doubled=doubled,
        repetitive=is_repetitive(trained),
        untrained=is_mostly_untrained(rollout),
        garbled=is_noise(trained, logprob) or has_broken_text(rollout),
        mean_logprob=logprob,
    )


def _mean_logprob(logprobs: Sequence[float], masks: Sequence[int]) -> float | None:
    """Of the trained tokens, where there is one for each."""
    if len(logprobs) != len(masks):
        return None
    trained = [logprob for logprob, mask in zip(logprobs, masks, strict=True) if mask != NOT_TRAINED]
    return fmean(trained) if all(logprob <= 0.0 for logprob in trained) else None


def is_noise(tokens: Sequence[int], mean_logprob: float | None) -> bool:
    """Whether tokens were sampled as good as at random, whatever they read like."""
    return mean_logprob is not None and len(tokens) >= SHORTEST_NOISE and mean_logprob < NOISE_LOGPROB


def has_broken_text(rollout: Rollout) -> bool:
    """Whether the last reply has characters that no text has: bytes that are no character, or control characters."""
    replies = [message.get("content") for message in rollout.messages if message.get("role") == "assistant"]
    text = replies[-1] if replies else None
    if not isinstance(text, str) or len(text) < SHORTEST_NOISE:
        return False
    broken = sum(text.count(character) for character in _BROKEN)
    return broken >= BROKEN_SHARE * len(text)


def is_mostly_untrained(rollout: Rollout) -> bool:
    """Whether the last reply has more text than what is trained on can stand for."""
    replies = [message for message in rollout.messages if message.get("role") == "assistant"]
    texts = [replies[-1].get(part) for part in ("content", "reasoning_content")] if replies else []
    characters = sum(len(text) for text in texts if isinstance(text, str))
    if characters < LONG_REPLY:
        return False
    trained = sum(mask != NOT_TRAINED for mask in rollout.masks)
    return characters > MOST_CHARACTERS_A_TOKEN * trained


def is_repetitive(tokens: Sequence[int]) -> bool:
    """Whether most sequences of `GRAM` tokens occurred before."""
    if len(tokens) < SHORTEST_LOOP:
        return False
    grams = len(tokens) - GRAM + 1
    different = len({tuple(tokens[start : start + GRAM]) for start in range(grams)})
    return different < LEAST_DIFFERENT * grams
