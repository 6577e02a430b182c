"""Groups of two sides are paired by their tokens, and what differs is named: meant, or not."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.upstream_environments.comparison import Group, compare
from benchmarks.upstream_environments.differences import EXPLAINED, UNEXPLAINED, kind_of
from benchmarks.upstream_environments.words import comparison_in_words, is_explained


def group(**fields: Any) -> Group:
    return {"tokens": [[1, 2], [3, 4]], "masks": [[-100, 2], [-100, 4]], "scores": [0.0, 1.0]} | fields


def test_sequences_may_come_in_another_order_and_carry_their_fields_along():
    turned = group(tokens=[[3, 4], [1, 2]], masks=[[-100, 4], [-100, 2]], scores=[1.0, 0.0])
    comparison = compare([group()], [turned])
    assert (comparison.paired, comparison.differences) == (1, ())
    assert comparison.same_tokens
    assert comparison_in_words(comparison) == "same tokens"


def test_a_score_of_another_sequence_is_a_difference_that_nothing_explains():
    comparison = compare([group()], [group(scores=[1.0, 0.0])])
    assert comparison.kinds() == {UNEXPLAINED: ["scores"]}
    assert not is_explained(comparison)


def test_groups_of_which_the_other_side_has_none_are_counted():
    comparison = compare([group(), group()], [group(), group(tokens=[[9], [9]])])
    assert (comparison.ours, comparison.upstream, comparison.paired) == (2, 2, 1)
    assert not comparison.same_tokens
    assert comparison_in_words(comparison) == "1 of 2 and 2 groups have the same tokens"
    assert not is_explained(comparison)


def test_a_side_that_made_more_groups_is_compared_by_those_of_the_other():
    assert compare([group(), group(tokens=[[9], [9]])], [group()]).same_tokens
    assert not compare([], []).same_tokens


def test_a_key_that_only_one_side_has_is_a_difference_though_both_values_are_none():
    assert compare([group(images=None)], [group()]).kinds() == {"added": ["images"]}


@pytest.mark.parametrize(
    ("kind", "field", "ours", "upstream"),
    [
        ("absent", "overrides", None, []),
        ("absent", "group_overrides", None, {}),
        (UNEXPLAINED, "overrides", [], None),
        ("float", "scores", [0.0, 1.0], [0, 1.0]),
        (UNEXPLAINED, "scores", [0.0, 1.0], [0, 2]),
        ("messages", "messages", [[{"role": "user", "content": "a"}]], ["a"]),
        (UNEXPLAINED, "messages", [[{"role": "user", "content": "b"}]], ["a"]),
        ("special_tokens", "messages", [[{"content": "a<|im_end|>"}]], [[{"content": "a"}]]),
        (UNEXPLAINED, "messages", [[{"content": "b<|im_end|>"}]], [[{"content": "a"}]]),
        ("kept", "finish_reason", ["stop"], None),
        (UNEXPLAINED, "advantages", [[1.0]], None),
        ("random", "item_uuid", "ab", "cd"),
        (UNEXPLAINED, "generation_params", None, {"temperature": 1.0}),
    ],
)
def test_each_kind_of_difference_is_known_by_its_values(kind: str, field: str, ours: Any, upstream: Any):
    assert kind_of(field, ours, upstream) == kind
    assert kind in EXPLAINED or kind == UNEXPLAINED


@pytest.mark.parametrize(
    ("kind", "ours", "upstream"),
    [
        ("agent_header", [-100, -100, 3, 4], [-100, 2, 3, 4]),
        (UNEXPLAINED, [-100, -100, 3, -100], [-100, 2, 3, 4]),  # what follows an agent's turn is not its header
        (UNEXPLAINED, [-100, -100, 3, 4], [2, -100, 3, 4]),  # nor is what stands apart from it
        (UNEXPLAINED, [-100, 2, 3, 4], [-100, -100, 3, 4]),
        (UNEXPLAINED, [*[-100] * 9, 9], list(range(10))),
    ],
)
def test_only_a_few_tokens_right_before_a_turn_are_its_header(kind: str, ours: list[int], upstream: list[int]):
    assert kind_of("masks", [ours], [upstream]) == kind


def test_own_keys_may_stay_off_the_wire_and_not_out_of_the_file():
    theirs = group(item_ids=["a", "a"])
    assert compare([group()], [theirs], on_the_wire=True).kinds() == {"unsent": ["item_ids"]}
    assert compare([group()], [theirs]).kinds() == {UNEXPLAINED: ["item_ids"]}
    assert compare([group()], [group(images=["x", "y"])], on_the_wire=True).kinds() == {UNEXPLAINED: ["images"]}
