"""Hints that are found in tokens without a tokenizer."""

from __future__ import annotations

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


def test_such_rollouts_are_counted_with_the_newest_group_that_shows_it() -> None:
    lookout = TokenLookout()
    cut, whole = rollout("y" * 900, trained=3), rollout("y" * 900, trained=300)
    assert lookout.take(GroupContent(1, "a", (cut, whole)), mono=0.0)
    assert lookout.take(GroupContent(2, "b", (whole, whole)), mono=10.0)
    looks = lookout.section()
    assert (looks.rollouts, looks.untrained, looks.untrained_group) == (4, 1, 1)
