"""Choosing the groups of a batch: exactly so many sequences, oldest groups first, the environments' minimums met.

Groups cannot be split, so a batch is a subset sum. What matters is only how many groups of each size each environment
has waiting, never how long the queue is: sums are bitsets in Python's integers, in which bit n says that n sequences
can be had. Choosing costs a few such operations for each group that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

# The environment that sent a group (None: it named none that is known) and the group's number of sequences.
Kind: TypeAlias = tuple[int | None, int]


def reachable_sums(counts: Mapping[int, int], target: int) -> int:
    """Bit n of the result: some of `counts` (size → how many groups) add up to n sequences; for n up to `target`."""
    sums = 1
    within = (1 << (target + 1)) - 1
    for size, count in counts.items():
        left = min(count, target // size)
        step = 1
        while left > 0:
            taken = min(step, left)
            sums |= (sums << (taken * size)) & within
            left -= taken
            step *= 2
    return sums


def can_pack(waiting: Mapping[Kind, int], target: int, minimums: Mapping[int, int]) -> bool:
    """Whether groups of `waiting` (kind → how many) add up to `target`, each environment's minimum included."""
    free: dict[int, int] = {}
    bound: dict[int, dict[int, int]] = {env_id: {} for env_id, least in minimums.items() if least > 0}
    for (env_id, size), count in waiting.items():
        counts = free if env_id is None else bound.get(env_id, free)
        counts[size] = counts.get(size, 0) + count
    within = (1 << (target + 1)) - 1
    sums = reachable_sums(free, target)
    for env_id, counts in bound.items():
        shares = reachable_sums(counts, target) >> minimums[env_id] << minimums[env_id]
        combined = 0
        while shares:
            lowest = shares & -shares
            combined |= sums << (lowest.bit_length() - 1)
            shares ^= lowest
        sums = combined & within
    return bool(sums >> target & 1)


def choose(
    waiting: Mapping[Kind, int],
    target: int,
    minimums: Mapping[int, int],
    age_of: Callable[[Kind, int], int],
) -> list[Kind] | None:
    """The kinds of the groups to take, one entry a group, oldest first; None when no subset fits.

    `age_of(kind, n)` is the number of the kind's n-th oldest group; smaller is older. Among all subsets that fit, the
    one whose oldest groups are oldest is chosen.
    """
    left = dict(waiting)
    if not can_pack(left, target, minimums):
        return None
    still_due = {env_id: least for env_id, least in minimums.items() if least > 0}
    taken: dict[Kind, int] = dict.fromkeys(left, 0)
    chosen: list[Kind] = []
    while target > 0:
        kind = min(left, key=lambda kind: age_of(kind, taken[kind]))
        env_id, size = kind
        after = {**left, kind: left[kind] - 1}
        due_after = still_due
        if env_id is not None and env_id in still_due:
            due_after = {**still_due, env_id: still_due[env_id] - size}
        if size <= target and can_pack(after, target - size, due_after):
            chosen.append(kind)
            taken[kind] += 1
            target -= size
            left, still_due = after, due_after
            if not left[kind]:
                del left[kind]
        else:
            # No batch that holds what is chosen so far has room for a group of this kind, so none later will.
            del left[kind]
    return chosen


def can_ever_pack(sizes: frozenset[int], target: int) -> bool:
    """Whether groups of these sizes, however many of each, can add up to `target` sequences."""
    return bool(reachable_sums(dict.fromkeys(sizes, target), target) >> target & 1)
