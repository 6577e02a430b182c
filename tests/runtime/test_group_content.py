"""What is kept of a group for those who look at it: the logprobs of a reference or a teacher."""

from __future__ import annotations

from typing import Any

from atropos_tui.runtime.group_content import checked_content, readable_content
from atropos_tui.runtime.group_shapes import body_of


def group(**fields: Any) -> dict[str, Any]:
    return {"tokens": [[1, 2], [3, 4]], "masks": [[-100, 2], [-100, 4]], "scores": [0.0, 1.0], **fields}


def reference_of(told: dict[str, Any]) -> list[list[float]]:
    content = checked_content(told, body_of(told, told["tokens"]), group_id=1, item="item")
    return [list(rollout.ref_logprobs) for rollout in content.rollouts]


def test_the_logprobs_of_a_reference_are_kept() -> None:
    assert reference_of(group(ref_logprobs=[[1.0, -0.5], [1.0, -0.25]])) == [[1.0, -0.5], [1.0, -0.25]]


def test_of_a_teacher_those_of_the_sampled_tokens_are_kept_and_1_stands_for_what_it_did_not_tell() -> None:
    told = group(
        distill_token_ids=[[[9, 1], [2, 8]], [[7, 8], [4, 5]]],
        distill_logprobs=[[[-0.1, -2.0], [-0.2, -3.0]], [[-0.1, -0.2], [-0.4, -0.5]]],
    )
    assert reference_of(told) == [[-2.0, -0.2], [1.0, -0.4]]


def test_without_either_there_is_none() -> None:
    assert reference_of(group()) == [[], []]


def test_of_a_malformed_group_what_can_be_read_is_kept() -> None:
    content = readable_content(group(scores=[0.0], ref_logprobs=[[1.0, -0.5], "?"]), group_id=1, item="item")
    assert [list(rollout.ref_logprobs) for rollout in content.rollouts] == [[1.0, -0.5], []]
