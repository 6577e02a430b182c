"""The default `collect_trajectories`: a group from single rollouts that run beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from atropos_tui.errors import ContractError
from atropos_tui.ledger import current_rollout
from atropos_tui.runtime.types import Item, ScoredDataGroup

T = TypeVar("T")

# One value for the whole group; every other key has one entry a rollout.
GROUP_KEYS = ("group_overrides", "generation_params")


async def collect_group(
    collect_trajectory: Callable[[Item], Coroutine[Any, Any, Any]], item: Item, size: int
) -> tuple[ScoredDataGroup | None, list[Item]]:
    """`size` rollouts of one item as a group, and the further items they gave.

    A rollout that comes back as None is tried once more, so that the group stays full; None again gives up the group.
    The first exception cancels the other rollouts and is raised.
    """

    async def collect(index: int) -> Any:
        current_rollout.set(index)
        return await collect_trajectory(item)

    results = [_unpack(result) for result in await gather_all([collect(index) for index in range(size)])]
    further_items = [further for _, items in results for further in items]
    rollouts = [rollout for rollout, _ in results]
    missing = [index for index, rollout in enumerate(rollouts) if rollout is None]
    again = [_unpack(result) for result in await gather_all([collect(index) for index in missing])]
    for index, (rollout, items) in zip(missing, again, strict=True):
        rollouts[index] = rollout
        further_items.extend(items)
    filled = [rollout for rollout in rollouts if rollout is not None]
    return (merge(filled) if len(filled) == len(rollouts) else None), further_items


async def gather_all(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. Whatever happens, nothing of it runs on afterwards."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return [task.result() for task in tasks]
    finally:
        running = [task for task in tasks if task.cancel()]
        if running:
            await asyncio.wait(running)


def merge(rollouts: Sequence[dict[str, Any]]) -> ScoredDataGroup:
    """One group of several rollouts, with every key they have. Raises ContractError when only some have a key."""
    group: dict[str, Any] = {}
    for key in dict.fromkeys(key for rollout in rollouts for key in rollout):
        values = [rollout.get(key) for rollout in rollouts]
        if key in GROUP_KEYS:
            merged = {name: value for told in values if told for name, value in told.items()}
            group[key] = merged or None
        elif all(value is None for value in values):
            group[key] = None
        elif key == "overrides":
            group[key] = [value or {} for value in values]
        elif key != "images" and any(value is None for value in values):
            having = sum(value is not None for value in values)
            raise ContractError(
                f"only {having} of {len(values)} rollouts of a group have {key!r}", "give it in all of them or in none"
            )
        else:
            group[key] = values
    return cast(ScoredDataGroup, group)


def _unpack(result: Any) -> tuple[dict[str, Any] | None, list[Item]]:
    if not isinstance(result, (tuple, list)) or len(result) != 2 or not isinstance(result[0], (dict, type(None))):
        raise ContractError(
            f"collect_trajectory returned {type(result).__name__} instead of (scored rollout or None, items)",
            "return a pair such as `ScoredDataItem(tokens=…, masks=…, scores=…), []`",
        )
    return result[0], list(result[1] or [])
