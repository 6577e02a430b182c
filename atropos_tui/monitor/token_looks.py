"""A cheap look at some rollouts: replies that go round in circles, an end of turn that stands twice, lost reasoning.

All are hints, found without a tokenizer: the end-of-turn token is the one with which most replies end, and where far
fewer tokens are trained on than the text must have, some was lost on the way, usually by a chat template.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
        return TokenLooks(
            rollouts=len(looks),
            repetitive=len(repetitive),
            repetitive_group=repetitive[-1].group_id if repetitive else -1,
            end_token=end if doubled else -1,
            doubled_end=len(doubled),
            doubled_end_group=doubled[-1].group_id if doubled else -1,
            untrained=len(untrained),
            untrained_group=untrained[-1].group_id if untrained else -1,
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
    return _Look(group_id, trained[-1], doubled, is_repetitive(trained), is_mostly_untrained(rollout))


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
