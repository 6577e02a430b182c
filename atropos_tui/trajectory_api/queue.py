"""Accepted groups in order, by environment and size. Pure; every count is derived from the lengths of a few deques."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from atropos_tui.trajectory_api.group import QueuedGroup
from atropos_tui.trajectory_api.packing import Kind, choose


class GroupQueue:
    """Groups that wait, oldest first within each environment and size."""

    def __init__(self) -> None:
        self._waiting: dict[Kind, deque[QueuedGroup]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[QueuedGroup]:
        """All groups, oldest first. Takes time in proportion to the queue: for looking, not for serving."""
        return iter(sorted((group for line in self._waiting.values() for group in line), key=_age))

    @property
    def sequences(self) -> int:
        return sum(size * len(line) for (_, size), line in self._waiting.items())

    @property
    def largest_size(self) -> int:
        """Sequences of the largest group that waits; 0 when none does."""
        return max((size for _, size in self._waiting), default=0)

    @property
    def oldest(self) -> QueuedGroup | None:
        return min((line[0] for line in self._waiting.values()), key=_age, default=None)

    def counts(self) -> dict[Kind, int]:
        """How many groups wait of each kind."""
        return {kind: len(line) for kind, line in self._waiting.items()}

    def oldest_of(self, kind: Kind) -> QueuedGroup:
        """Raises KeyError when no group of the kind waits."""
        return self._waiting[kind][0]

    def newest_of(self, kind: Kind) -> QueuedGroup:
        """Raises KeyError when no group of the kind waits."""
        return self._waiting[kind][-1]

    def put(self, group: QueuedGroup) -> None:
        """Add a group that is newer than all that wait of its kind."""
        self._waiting.setdefault((group.env_id, group.sequences), deque()).append(group)

    def take(self, sequences: int, minimums: Mapping[int, int]) -> list[QueuedGroup] | None:
        """Remove and give groups of exactly so many sequences, oldest first; None when no subset fits.

        `minimums` are the sequences that each of these environments must have in the batch.
        """
        kinds = choose(self.counts(), sequences, minimums, lambda kind, n: self._waiting[kind][n].number)
        return None if kinds is None else [self._pop(kind) for kind in kinds]

    def count_batches(self, sequences: int, minimums: Mapping[int, int], most: int) -> int:
        """How many batches could be taken one after the other, counted up to `most`. Takes nothing."""
        left = self.counts()
        taken: dict[Kind, int] = dict.fromkeys(left, 0)
        batches = 0
        while batches < most:
            kinds = choose(left, sequences, minimums, lambda kind, n: self._waiting[kind][taken[kind] + n].number)
            if kinds is None:
                break
            batches += 1
            for kind in kinds:
                left[kind] -= 1
                taken[kind] += 1
            left = {kind: count for kind, count in left.items() if count}
        return batches

    def put_back(self, groups: Iterable[QueuedGroup]) -> None:
        """Return groups that were taken to the places they had."""
        # The newest first: then each is older than those that were put back before it, and goes to the front at once.
        for group in sorted(groups, key=_age, reverse=True):
            line = self._waiting.setdefault((group.env_id, group.sequences), deque())
            older = []
            while line and line[0].number < group.number:
                older.append(line.popleft())
            line.appendleft(group)
            line.extendleft(reversed(older))

    def _pop(self, kind: Kind) -> QueuedGroup:
        line = self._waiting[kind]
        group = line.popleft()
        if not line:
            del self._waiting[kind]
        return group


def _age(group: QueuedGroup) -> int:
    return group.number
