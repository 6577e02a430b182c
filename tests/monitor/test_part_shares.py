"""When one part of the score has taken over."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.monitor.part_shares import STRETCH, PartShares
from atropos_tui.monitor.score_parts import MAX_PARTS

GROUPS = 5 * STRETCH


def shares(parts_at: Callable[[float, random.Random], dict[str, float]], groups: int = GROUPS) -> PartShares:
    """`parts_at` makes the parts of a rollout when this share of the run is over; the score is their sum."""
    chance, shares = random.Random(7), PartShares()
    for number in range(groups):
        told = [parts_at(number / groups, chance) for _ in range(8)]
        rollouts = tuple(Rollout(score=sum(parts.values()), parts=parts) for parts in told)
        shares.take(GroupContent(number, "item", rollouts))
    return shares


def gamed(over: float, chance: random.Random) -> dict[str, float]:
    """Replies learn to be long; that they are right is lost."""
    right = float(chance.random() < 0.8 * (1 - over))
    return {"right": 0.5 * right * (1 - over), "length": over * chance.random() + 0.1 * chance.random()}


def healthy(over: float, chance: random.Random) -> dict[str, float]:
    """Both parts get better, until one of them is all that still tells rollouts apart."""
    form = float(chance.random() < min(1.0, 0.3 + 1.5 * over))
    return {"format": form, "answer": float(chance.random() < 0.2 + 0.6 * over)}


def test_a_part_that_takes_over_is_found_with_the_one_that_fell_and_a_group_that_shows_it() -> None:
    takeover = shares(gamed).takeover()
    assert (takeover.part, takeover.fallen) == ("length", "right")
    assert takeover.share > 0.95 > 0.5 > takeover.share_before
    assert takeover.fallen_mean < takeover.fallen_mean_before
    assert takeover.group_id == GROUPS - 1


def test_a_run_that_gets_better_is_none_even_where_one_part_saturates() -> None:
    found = shares(healthy)
    assert found.takeover().part == ""


@pytest.mark.parametrize("seed", range(20))
def test_chance_alone_is_none(seed: int) -> None:
    own = random.Random(seed)
    takeover = shares(lambda over, chance: {"a": own.random(), "b": float(own.random() < 0.5)}).takeover()
    assert takeover.part == ""


def test_a_part_that_always_decided_is_none() -> None:
    takeover = shares(lambda over, chance: {"answer": chance.random(), "brief": 0.01 * (1 - over)}).takeover()
    assert takeover.part == ""


def test_the_beginning_of_a_run_says_nothing_yet() -> None:
    assert shares(gamed, groups=3 * STRETCH - 1).takeover().part == ""


def test_weights_and_scales_do_not_matter() -> None:
    chance, scaled = random.Random(7), PartShares()
    for number in range(GROUPS):
        told = [gamed(number / GROUPS, chance) for _ in range(8)]
        scaled.take(
            GroupContent(
                number, "item",
                tuple(Rollout(score=sum(parts.values()), parts={name: 1e3 * value for name, value in parts.items()})
                      for parts in told),
            )
        )  # fmt: skip
    assert scaled.takeover().share == pytest.approx(shares(gamed).takeover().share)


def test_what_is_no_number_or_too_large_or_too_many_names_does_no_harm() -> None:
    strange = PartShares()
    for number in range(GROUPS):
        parts = {"a": math.nan, "b": 1e308 * (-1) ** number, f"name {number}": 1.0}
        rollouts = (Rollout(1e308, parts=parts), Rollout(-1e308, parts={"b": -1e308}), Rollout(None, parts=parts))
        strange.take(GroupContent(number, "item", rollouts))
    assert math.isfinite(strange.takeover().share)
    assert len(strange._parts) <= MAX_PARTS
