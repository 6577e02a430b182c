"""The default group of single rollouts: full, complete in every field, and never left running half."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from atropos_tui.errors import ContractError
from atropos_tui.ledger import current_rollout
from atropos_tui.runtime.collecting import collect_group, merge
from tests.runtime.serving_parts import until


def rollout(score: float, **more: Any) -> dict[str, Any]:
    return {"tokens": [1, 2], "masks": [-100, 2], "scores": score, **more}


async def test_each_rollout_knows_its_place_in_the_group_also_when_it_is_tried_again():
    places: list[int | None] = []

    async def second_is_none_at_first(item: Any) -> Any:
        await asyncio.sleep(0)
        places.append(current_rollout.get())
        return (None if places.count(1) == 1 and places[-1] == 1 else rollout(1.0)), []

    group, _ = await collect_group(second_is_none_at_first, "item", 3)
    assert group is not None
    assert places == [0, 1, 2, 1]
    assert current_rollout.get() is None


async def test_every_field_of_a_rollout_is_passed_on():
    extra = {
        "inference_logprobs": [1.0, -0.5], "messages": [{"role": "user", "content": "x"}], "advantages": [0.0, 1.0],
        "distill_token_ids": [[1], [2]], "distill_logprobs": [[-1.0], [-2.0]], "images": "picture", "mine": 7,
    }  # fmt: skip
    scores = iter([0.0, 1.0, 2.0])

    async def one(item: Any) -> Any:
        return rollout(next(scores), **extra), [item]

    group, backlog = await collect_group(one, "item", 3)
    assert group is not None
    assert group["scores"] == [0.0, 1.0, 2.0]
    assert all(group[key] == [value] * 3 for key, value in extra.items())
    assert backlog == ["item"] * 3


def test_absent_fields_are_absent_and_not_empty_lists():
    group = merge([rollout(0.0), rollout(1.0, ref_logprobs=None)])
    assert "messages" not in group
    assert group["ref_logprobs"] is None


def test_overrides_of_some_rollouts_are_empty_for_the_others_and_those_of_the_group_are_merged():
    group = merge(
        [
            rollout(0.0, overrides={"set_advantage_to_zero": True}, group_overrides={"group_size": 2}),
            rollout(1.0, group_overrides={"temperature": 0.5}),
        ]
    )
    assert group["overrides"] == [{"set_advantage_to_zero": True}, {}]
    assert group["group_overrides"] == {"group_size": 2, "temperature": 0.5}


def test_a_field_that_only_some_rollouts_have_is_an_error_that_names_it():
    with pytest.raises(ContractError, match="only 1 of 2 rollouts of a group have 'inference_logprobs'"):
        merge([rollout(0.0, inference_logprobs=[1.0, -0.5]), rollout(1.0)])


async def test_a_rollout_that_is_none_is_tried_once_more_so_that_the_group_is_full():
    calls = 0

    async def third_is_none(item: Any) -> Any:
        nonlocal calls
        calls += 1
        return (None if calls == 3 else rollout(float(calls))), []

    group, _ = await collect_group(third_is_none, 1, 4)
    assert group is not None
    assert group["scores"] == [1.0, 2.0, 5.0, 4.0]


async def test_a_rollout_that_stays_none_gives_the_group_up():
    async def none(item: Any) -> Any:
        return None, ["next"]

    assert await collect_group(none, 1, 2) == (None, ["next"] * 4)


async def test_one_failure_ends_the_siblings_and_is_the_one_that_is_raised():
    ended: list[str] = []

    async def fail_or_hang(item: Any) -> Any:
        if not ended:
            ended.append("failed")
            raise KeyError("root")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(KeyError, match="root"):
        await collect_group(fail_or_hang, 1, 4)
    assert ended.count("cancelled") in (0, 3)
    assert len(asyncio.all_tasks()) == 1


async def test_a_cancelled_group_leaves_no_rollout_running():
    running = 0

    async def hang(item: Any) -> Any:
        nonlocal running
        running += 1
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1

    group = asyncio.create_task(collect_group(hang, 1, 3))
    await until(lambda: running == 3)
    group.cancel()
    with pytest.raises(asyncio.CancelledError):
        await group
    assert running == 0


@pytest.mark.parametrize("result", [None, 5, ({"tokens": []},), ("text", []), [1, 2, 3]])
async def test_what_is_no_pair_of_rollout_and_items_is_named(result: Any):
    async def odd(item: Any) -> Any:
        return result

    with pytest.raises(ContractError, match="collect_trajectory returned"):
        await collect_group(odd, 1, 1)
