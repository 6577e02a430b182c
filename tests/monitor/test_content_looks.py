"""What contents tell beside the scores: the parts of them, replies in circles, and an end of turn that stands twice."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.score_parts import MAX_PARTS, MAX_POINTS, ScoreParts
from atropos_tui.monitor.token_looks import SECONDS_BETWEEN_LOOKS, TokenLookout, is_repetitive

END = 2


def told(*parts: dict[str, float]) -> GroupContent:
    return GroupContent(1, "item", tuple(Rollout(score=1.0, parts=part) for part in parts))


def group(group_id: int, *replies: Sequence[int]) -> GroupContent:
    """Each reply after a prompt that is not trained on."""
    prompt = (9, 9, 9)
    return GroupContent(
        group_id, "item",
        tuple(Rollout(1.0, (*prompt, *reply), (-100,) * 3 + tuple(reply)) for reply in replies),
    )  # fmt: skip


def text(seed: int, length: int = 40) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(10, 5_000) for _ in range(length)]


class TestScoreParts:
    def test_mean_spread_within_groups_and_trend(self) -> None:
        parts = ScoreParts()
        assert parts.take(told({"format": 1.0, "answer": 0.0}, {"format": 1.0, "answer": 1.0}))
        parts.take(told({"format": 1.0, "answer": 1.0}, {"format": 1.0, "answer": 1.0}))
        form, answer = parts.section()
        assert (form.name, form.groups, form.mean, form.within_std) == ("format", 2, 1.0, 0.0)
        assert (answer.mean, answer.within_std, answer.points) == (0.75, 0.25, (0.5, 1.0))

    def test_a_group_without_parts_changes_nothing(self) -> None:
        parts = ScoreParts()
        assert not parts.take(told({}, {}))
        assert parts.section() == ()

    def test_what_is_no_number_is_left_out(self) -> None:
        parts = ScoreParts()
        parts.take(told({"a": math.nan, "b": 1.0}, {"a": math.inf, "b": 3.0}))
        assert [(part.name, part.mean) for part in parts.section()] == [("b", 2.0)]

    def test_it_stays_small_over_many_groups_and_many_names(self) -> None:
        parts = ScoreParts()
        for number in range(1_000):
            parts.take(told({"a": float(number), f"name {number}": 1.0}))
        section = parts.section()
        assert len(section) == MAX_PARTS
        assert section[0].groups == 1_000
        assert len(section[0].points) <= MAX_POINTS
        assert list(section[0].points) == sorted(section[0].points)


class TestTokenLooks:
    def test_running_text_is_neither(self) -> None:
        lookout = TokenLookout()
        for number in range(10):
            lookout.take(group(number, [*text(number), END], [*text(100 + number), END]), mono=float(number))
        looks = lookout.section()
        assert (looks.rollouts, looks.repetitive, looks.doubled_end, looks.end_token) == (20, 0, 0, -1)

    def test_an_end_of_turn_that_stands_twice_is_counted_with_a_group_that_shows_it(self) -> None:
        lookout = TokenLookout()
        for number in range(4):
            doubled = [END, END] if number == 2 else [END]
            lookout.take(group(number, [*text(number), *doubled]), mono=float(number))
        looks = lookout.section()
        assert (looks.doubled_end, looks.end_token, looks.doubled_end_group) == (1, END, 2)

    def test_another_token_that_stands_twice_is_no_end_of_turn(self) -> None:
        lookout = TokenLookout()
        lookout.take(group(1, [*text(1), 77, 77, *text(2), END], [*text(3), END]), mono=0.0)
        assert lookout.section().doubled_end == 0

    def test_where_replies_end_in_different_tokens_nothing_is_said_of_their_ends(self) -> None:
        lookout = TokenLookout()
        lookout.take(group(1, *([*text(number), 500 + number, 500 + number] for number in range(4))), mono=0.0)
        assert lookout.section().doubled_end == 0

    @pytest.mark.parametrize(
        ("tokens", "repetitive"),
        [
            ([5, 6, 7] * 40, True),
            (text(1, 200), False),
            ([5] * 63, False),
            ([5] * 64, True),
            ([*text(1, 20), *[8] * 200], True),
        ],
    )
    def test_a_reply_in_circles(self, tokens: list[int], repetitive: bool) -> None:
        assert is_repetitive(tokens) is repetitive

    def test_not_every_group_is_looked_at(self) -> None:
        lookout = TokenLookout()
        assert lookout.take(group(1, text(1)), mono=10.0)
        assert not lookout.take(group(2, text(2)), mono=10.0 + SECONDS_BETWEEN_LOOKS / 2)
        assert lookout.take(group(3, text(3)), mono=10.0 + SECONDS_BETWEEN_LOOKS)

    def test_rollouts_without_trained_tokens_or_masks_are_no_looks(self) -> None:
        lookout = TokenLookout()
        assert not lookout.take(GroupContent(1, "", (Rollout(1.0, (1, 2), (-100, -100)), Rollout(1.0, (1, 2)))), 0.0)
        assert lookout.section().rollouts == 0
