"""Hints that are found in tokens without a tokenizer."""

from __future__ import annotations

import pytest

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.token_looks import TokenLookout, is_mostly_untrained


def rollout(reply: str, trained: int, *, reasoning: str = "", prompt: int = 20) -> Rollout:
    message = {"role": "assistant", "content": reply} | ({"reasoning_content": reasoning} if reasoning else {})
    tokens = list(range(prompt + trained))
    return Rollout(
        score=1.0,
        tokens=tokens,
        masks=[-100] * prompt + tokens[prompt:],
        messages=[{"role": "user", "content": "?" * 500}, message],
    )


def test_a_long_reply_of_which_little_is_trained_on_was_cut_on_the_way() -> None:
    assert is_mostly_untrained(rollout("<think>" + "x" * 2000 + "</think> 5", trained=4))
    assert is_mostly_untrained(rollout("5", reasoning="because " * 50, trained=4))


def test_ordinary_replies_are_none_of_that() -> None:
    assert not is_mostly_untrained(rollout("x" * 2000, trained=500))
    assert not is_mostly_untrained(rollout("5", trained=1))
    assert not is_mostly_untrained(rollout("internationalisation " * 20, trained=60))
    assert not is_mostly_untrained(Rollout(score=0.0))


def sampled(logprob: float, text: str, count: int = 64) -> Rollout:
    tokens = list(range(count))
    return Rollout(
        score=1.0,
        tokens=[1, *tokens],
        masks=[-100, *tokens],
        logprobs=[1.0, *[logprob] * count],
        messages=[{"role": "assistant", "content": text}],
    )


@pytest.mark.parametrize(
    ("rollout", "garbled"),
    [
        (sampled(-0.7, "an ordinary reply of some length, " * 3), False),
        (sampled(-8.0, "words table the green of seven " * 3), True),
        (sampled(-8.0, "short", count=31), False),
        (sampled(-0.7, "half a reply \ufffd\ufffd\ufffd and \x00\x01 the other half"), True),
        (sampled(-0.7, "tabs\tand lines\n" * 10), False),
        (sampled(0.5, "no logprobs that could be"), False),
    ],
)
def test_noise_is_known_by_its_logprobs_or_by_characters_that_no_text_has(rollout: Rollout, garbled: bool) -> None:
    lookout = TokenLookout()
    assert lookout.take(GroupContent(3, "", (rollout,)), mono=0.0)
    looks = lookout.section()
    assert (looks.garbled, looks.garbled_group) == ((1, 3) if garbled else (0, -1))


def test_the_mean_logprob_is_that_of_trained_tokens_and_none_where_none_are_told() -> None:
    lookout = TokenLookout()
    assert lookout.section().mean_logprob is None
    lookout.take(GroupContent(1, "", (rollout("reply", trained=5),)), mono=0.0)
    assert lookout.section().mean_logprob is None
    lookout.take(GroupContent(2, "", (sampled(-0.5, ""), sampled(-1.0, ""))), mono=10.0)
    assert lookout.section().mean_logprob == -0.75


def test_such_rollouts_are_counted_with_the_newest_group_that_shows_it() -> None:
    lookout = TokenLookout()
    cut, whole = rollout("y" * 900, trained=3), rollout("y" * 900, trained=300)
    assert lookout.take(GroupContent(1, "a", (cut, whole)), mono=0.0)
    assert lookout.take(GroupContent(2, "b", (whole, whole)), mono=10.0)
    looks = lookout.section()
    assert (looks.rollouts, looks.untrained, looks.untrained_group) == (4, 1, 1)
