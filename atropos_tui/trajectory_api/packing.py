"""Choosing the groups of a batch: exactly so many sequences, oldest groups first, the environments' minimums met.

Groups cannot be split, so a batch is a subset sum. What matters is only how many groups of each size each environment
has waiting, never how long the queue is: sums are bitsets in Python's integers, in which bit n says that n sequences
can be had. Choosing costs a few such operations for each group that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from math import gcd
from typing import TypeAlias

# The environment that sent a group (None: it named none that is known) and the group's number of sequences.
Kind: TypeAlias = tuple[int | None, int]


def reachable_sums(counts: Mapping[int, int], target: int) -> int:
    """Bit n of the result: some of `counts` (size → how many groups) add up to n sequences; for n up to `target`."""
    return _with_any(1, counts, target)


class _Stock:
    """How many groups of each size there are: of each environment with a minimum share, and of all others together.

    Sizes and sums are in units of what divides all sizes, so that the bitsets are that much shorter.
    """

    def __init__(self, waiting: Mapping[Kind, int], bound: Iterable[int]) -> None:
        self.unit = gcd(*(size for _, size in waiting)) or 1
        self._free: dict[int, int] = {}
        self._bound: dict[int, dict[int, int]] = {env_id: {} for env_id in bound}
        for kind, count in waiting.items():
            self.add(kind, count)

    def add(self, kind: Kind, count: int) -> None:
        """Below zero: take away so many."""
        env_id, size = kind
        counts = self._free if env_id is None else self._bound.get(env_id, self._free)
        size //= self.unit
        counts[size] = counts.get(size, 0) + count
        if not counts[size]:
            del counts[size]

    def can_make(self, target: int, due: Mapping[int, int]) -> bool:
        """Whether some of the groups add up to `target` sequences, of which each environment has at least its `due`."""
        target, rest = divmod(target, self.unit)
        if rest or self._sequences() < target:
            return False
        sums = reachable_sums(self._free, target)
        for env_id, counts in self._bound.items():
            least = -(-due[env_id] // self.unit)
            sums = _with_share(sums, counts, least, target) if least > 0 else _with_any(sums, counts, target)
        return bool(sums >> target & 1)

    def _sequences(self) -> int:
        return sum(size * count for counts in (self._free, *self._bound.values()) for size, count in counts.items())


def can_pack(waiting: Mapping[Kind, int], target: int, minimums: Mapping[int, int]) -> bool:
    """Whether groups of `waiting` (kind → how many) add up to `target`, each environment's minimum included."""
    due = {env_id: least for env_id, least in minimums.items() if least > 0}
    return _Stock(waiting, due).can_make(target, due)


def _with_any(sums: int, counts: Mapping[int, int], target: int) -> int:
    """`sums` after any of `counts` were added to each."""
    within = (1 << (target + 1)) - 1
    for size, count in counts.items():
        sums = _with_up_to(sums, size, min(count, target // size), within)
    return sums


def _with_share(sums: int, counts: Mapping[int, int], least: int, target: int) -> int:
    """`sums` after at least `least` sequences of `counts`, more than none, were added to each."""
    if not counts:
        return 0
    within = (1 << (target + 1)) - 1
    unit = gcd(*counts)
    first = -(-least // unit)
    shares = reachable_sums({size // unit: count for size, count in counts.items()}, target // unit) >> first << first
    combined = 0
    # The sums of one environment's groups are few long runs, so that a run takes as little time as one of its sums.
    for start, length in _runs(shares):
        combined |= _with_up_to(sums << (start * unit) & within, unit, length - 1, within)
    return combined


def _with_up_to(sums: int, size: int, count: int, within: int) -> int:
    """`sums` after up to `count` groups of a size were added to each."""
    step = 1
    while count > 0:
        taken = min(step, count)
        sums |= (sums << (taken * size)) & within
        count -= taken
        step *= 2
    return sums


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Where the bits that are set begin, and how many follow each other."""
    at = 0
    while bits:
        unset = (bits & -bits).bit_length() - 1
        bits >>= unset
        length = (~bits & (bits + 1)).bit_length() - 1
        yield at + unset, length
        bits >>= length
        at += unset + length


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
    due = {env_id: least for env_id, least in minimums.items() if least > 0}
    stock = _Stock(waiting, due)
    if not stock.can_make(target, due):
        return None
    kinds = list(waiting)
    taken = [0] * len(kinds)
    oldest = [(age_of(kind, 0), at) for at, kind in enumerate(kinds)]
    heapify(oldest)
    chosen: list[Kind] = []
    while target > 0:
        at = oldest[0][1]
        env_id, size = kind = kinds[at]
        due_after = {**due, env_id: due[env_id] - size} if env_id is not None and env_id in due else due
        stock.add(kind, -1)
        if size > target or not stock.can_make(target - size, due_after):
            # No batch that holds what is chosen so far has room for a group of this kind, so none later will.
            stock.add(kind, 1 + taken[at] - waiting[kind])
            heappop(oldest)
            continue
        chosen.append(kind)
        target, due = target - size, due_after
        taken[at] += 1
        if taken[at] < waiting[kind]:
            heapreplace(oldest, (age_of(kind, taken[at]), at))
        else:
            heappop(oldest)
    return chosen


def can_ever_pack(sizes: frozenset[int], target: int) -> bool:
    """Whether groups of these sizes, however many of each, can add up to `target` sequences."""
    if not sizes:
        return target == 0
    smallest, largest = min(sizes), max(sizes)
    # From there on a sum can be had whenever the one that is smaller by one group can.
    if target > 2 * largest * largest:
        target -= (target - 2 * largest * largest) // smallest * smallest
    return bool(reachable_sums(dict.fromkeys(sizes, target), target) >> target & 1)
