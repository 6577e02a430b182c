"""Choosing the groups of a batch out of a list, as `atroposlib.api.utils` does, by our trajectory API's packing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from atropos_tui.trajectory_api.packing import Kind, choose

# A scored group; what counts is how many entries `tokens` has, and `env_id`.
Group: TypeAlias = dict[str, Any]


def find_groups_summing_to_target(buffer: Sequence[Group], target_size: int) -> list[int]:
    """Indices of groups with exactly so many sequences together, the oldest that fit; none when nothing fits."""
    return _chosen([(None, len(group["tokens"])) for group in buffer], target_size, {}) or []


def grab_exact_from_heterogeneous_queue(queue: list[Group], batch_size: int) -> tuple[list[Group] | None, list[Group]]:
    """A batch of exactly so many sequences and what is left of the queue, or None and the queue."""
    return _taken(queue, find_groups_summing_to_target(queue, batch_size))


def grab_batch_with_minimum_allocations(
    queue: list[Group], batch_size: int, env_configs: Sequence[Mapping[str, Any]]
) -> tuple[list[Group] | None, list[Group]]:
    """A batch in which each connected environment has its `min_batch_allocation`, or None and the queue.

    Shares that claim more than the batch are cut in proportion.
    """
    due = {
        row["registered_id"]: int(batch_size * (row.get("min_batch_allocation") or 0.0))
        for row in env_configs
        if row.get("connected", False)
    }
    claimed = sum(due.values())
    if claimed > batch_size:
        due = {env_id: max(1, least * batch_size // claimed) for env_id, least in due.items() if least}
    kinds = [(group.get("env_id"), len(group["tokens"])) for group in queue]
    return _taken(queue, _chosen(kinds, batch_size, due) or [])


def _chosen(kinds: Sequence[Kind], target: int, minimums: Mapping[int, int]) -> list[int] | None:
    """Indices, in order, of the groups of the batch; `kinds` are those of the groups, oldest first."""
    places: dict[Kind, list[int]] = {}
    for index, kind in enumerate(kinds):
        places.setdefault(kind, []).append(index)
    waiting = {kind: len(indices) for kind, indices in places.items()}
    chosen = choose(waiting, target, minimums, lambda kind, n: places[kind][n])
    return None if chosen is None else sorted(places[kind].pop(0) for kind in chosen)


def _taken(queue: list[Group], indices: Sequence[int]) -> tuple[list[Group] | None, list[Group]]:
    if not indices:
        return None, queue
    taken = set(indices)
    return [queue[index] for index in indices], [group for index, group in enumerate(queue) if index not in taken]
