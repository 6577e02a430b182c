"""Groups of the same environment file on both sides, held against each other field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.upstream_environments.differences import kind_of, same

Group = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One field of one group. `kind` is a key of `differences.EXPLAINED`, or UNEXPLAINED."""

    field: str
    kind: str
    ours: Any
    upstream: Any


@dataclass(frozen=True)
class Comparison:
    """`paired` groups have the same tokens; `ours` and `upstream` say how many groups there are on each side."""

    ours: int
    upstream: int
    paired: int
    differences: tuple[Difference, ...]

    @property
    def same_tokens(self) -> bool:
        """Whether every group of the side with fewer has its like on the other."""
        return 0 < self.paired == min(self.ours, self.upstream)

    def kinds(self) -> dict[str, list[str]]:
        """Kinds of difference, each with the names of its fields."""
        found: dict[str, set[str]] = {}
        for difference in self.differences:
            found.setdefault(difference.kind, set()).add(difference.field)
        return {kind: sorted(names) for kind, names in sorted(found.items())}


def compare(ours: Sequence[Group], upstream: Sequence[Group], *, on_the_wire: bool = False) -> Comparison:
    """Pair groups that have the same tokens, in any order of their sequences, and compare their fields.

    `on_the_wire` says that the groups are bodies that were posted, not lines of a file.
    """
    waiting: dict[str, list[Group]] = {}
    for group in upstream:
        waiting.setdefault(_tokens_key(group), []).append(group)
    pairs = []
    for group in ours:
        if alike := waiting.get(_tokens_key(group)):
            pairs.append((_in_order(group), _in_order(alike.pop(0))))
    differences = tuple(
        Difference(name, kind_of(name, *values, on_the_wire=on_the_wire), *values)
        for mine, theirs in pairs
        for name, values in _differing(mine, theirs)
    )
    return Comparison(len(ours), len(upstream), len(pairs), differences)


def _tokens_key(group: Group) -> str:
    return json.dumps(sorted(group["tokens"]))


def _in_order(group: Group) -> Group:
    """The group with its sequences in the order of their tokens, then of their scores."""
    count = len(group["tokens"])
    order = sorted(range(count), key=lambda index: (group["tokens"][index], group["scores"][index]))
    return {
        name: [value[index] for index in order] if isinstance(value, list) and len(value) == count else value
        for name, value in group.items()
    }


def _differing(ours: Group, upstream: Group) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted(ours.keys() | upstream.keys()):
        mine, theirs = ours.get(name), upstream.get(name)
        if (name in ours) != (name in upstream) or not same(mine, theirs):
            yield name, (mine, theirs)
