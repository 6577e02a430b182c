"""Groups that ended, with their contents, for reading: in memory, within bounds of number and size."""

from __future__ import annotations

import heapq
import json
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from statistics import fmean
from typing import Protocol, Self

from atropos_tui.ledger import GroupContent
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.allowance import Allowance
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_filter import Says, Term, parse_terms, sorted_rows
from atropos_tui.monitor.group_query import GroupQuery, check_order
from atropos_tui.monitor.open_groups import MAX_SCORES, EndedGroup
from atropos_tui.monitor.packed_content import Decode, PackedRollout, pack, trained_tokens
from atropos_tui.monitor.run_file.stored_content import searchable_text
from atropos_tui.monitor.score_statistics import finite
from atropos_tui.monitor.skipped_model import LOST_OUTCOMES
from atropos_tui.monitor.snapshot import EndedRow

MAX_PAGE = 200

# Contents whose group has not yet been enqueued or ended; the next event of the group is on its way.
_MAX_UNSETTLED = 64
# What a request takes in memory, nearly.
_CALL_BYTES = 300


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list; empty means any. Ranges are inclusive, scores are means of a group.

    `search` is for the texts of messages, which only a record can look through. `terms`, `order`, `only` and `but` are
    those of a `GroupQuery`.
    """

    outcome: str = ""
    reason: str = ""
    search: str = ""
    score_from: float | None = None
    score_to: float | None = None
    step_from: int | None = None
    step_to: int | None = None
    terms: tuple[Term, ...] = ()
    order: str = "-time"
    only: frozenset[int] | None = None
    but: frozenset[int] = frozenset()

    @classmethod
    def of(cls, query: GroupQuery, *, outcome: str = "", reason: str = "", search: str = "") -> Self:
        """Raises UsageError for a filter that cannot be read, or an order that is not there."""
        return cls(
            outcome=outcome, reason=reason, search=search, terms=parse_terms(query.filter),
            order=check_order(query.order), but=frozenset(query.but),
            only=None if query.only is None else frozenset(query.only),
        )  # fmt: skip

    @property
    def by_time(self) -> bool:
        """Whether groups come newest first, and so can be paged by group."""
        return self.order == "-time"

    @property
    def reads_texts(self) -> bool:
        return any(not term.field for term in self.terms)

    def matches(self, row: EndedRow, says: Says = lambda word: False) -> bool:
        """All but `search`; `says` tells whether the group's messages have a text."""
        return (
            (not self.outcome or row.outcome == self.outcome)
            and (not self.reason or row.reason == self.reason)
            and _within(row.step, self.step_from, self.step_to)
            and (self.score_from is self.score_to is None or self._score_matches(row.scores))
            and (self.only is None or row.group_id in self.only)
            and row.group_id not in self.but
            and all(term.matches(row, says) for term in self.terms)
        )

    def _score_matches(self, scores: Sequence[float]) -> bool:
        return bool(scores) and _within(fmean(scores), self.score_from, self.score_to)


@dataclass(slots=True)
class KeptGroup:
    """`order` grows in order of ending. `rollouts` is None when the content was not kept or had to make room."""

    order: int
    ended: EndedGroup
    rollouts: tuple[PackedRollout, ...] | None

    @property
    def row(self) -> EndedRow:
        return replace(self.ended.row, has_content=self.rollouts is not None)

    @property
    def size(self) -> int:
        """Bytes of what makes room first."""
        return _size(self.rollouts or ()) + _CALL_BYTES * len(self.ended.calls)

    def says(self, word: str) -> bool:
        """Whether its messages have a text, whatever its case."""
        written = json.dumps(word, ensure_ascii=False)[1:-1]
        rollouts = [r for r in self.rollouts or () if written in r.messages.decode(errors="replace").casefold()]
        # The role and the names of tool calls' fields are in the JSON too.
        return bool(rollouts) and word in searchable_text(rollouts, sys.maxsize).casefold()

    def detail(self, decode: Decode) -> GroupDetail:
        """The group in full. May take a second for long sequences, so call it on no event loop."""
        return GroupDetail(
            row=self.row,
            rollouts=tuple(rollout.detail(decode) for rollout in self.rollouts or ()),
            error=self.ended.error,
            traceback=self.ended.traceback,
            body=self.ended.body,
            calls=self.ended.calls,
            earlier_calls=self.ended.earlier_calls,
        )


class GroupStore(Protocol):
    """Where ended groups are kept for reading; called on the monitor thread only."""

    def keep(self, content: GroupContent) -> None:
        """The content of a group that is about to be enqueued or to end."""
        ...

    def enqueued(self, group_id: int) -> None:
        """The group went to the outbox."""
        ...

    def ended(self, group: EndedGroup) -> int:
        """The place of the group in the order of ending."""
        ...

    def page(self, wanted: GroupFilter, older_than: int | None, limit: int, above: int = 0) -> GroupPage:
        """Newest first, in order of ending, below the group `older_than` and after the place `above`."""
        ...

    def find(self, group_id: int) -> KeptGroup | None: ...


@dataclass(slots=True)
class _Shelf:
    """Groups of one kind in order of ending, and the bytes of their contents."""

    groups: dict[int, KeptGroup] = field(default_factory=dict)
    with_content: deque[int] = field(default_factory=deque)
    size: int = 0

    def add(self, group: KeptGroup) -> None:
        group_id = group.ended.row.group_id
        self.groups[group_id] = group
        if group.rollouts is not None or group.ended.calls:
            self.with_content.append(group_id)
            self.size += group.size

    def drop_oldest_content(self) -> None:
        group = self.groups[self.with_content.popleft()]
        self.size -= group.size
        group.rollouts, group.ended = None, replace(group.ended, calls=())

    def drop_oldest(self) -> None:
        oldest = next(iter(self.groups))
        if self.with_content and self.with_content[0] == oldest:
            self.drop_oldest_content()
        del self.groups[oldest]


class MemoryGroupStore:
    """Keeps at most `max_groups` lines and `max_bytes` of contents.

    Lost groups (skipped, rejected, failed, refused) are what an operator looks for, so they stay longest: delivered
    ones make room first, down to a quarter of the space. Packing contents takes a small share of the time; what
    comes faster is listed without content. `ended_before` groups ended in earlier lives of the run.
    """

    def __init__(self, max_groups: int = 10_000, max_bytes: int = 64 << 20, ended_before: int = 0) -> None:
        self._max_groups = max_groups
        self._max_bytes = max_bytes
        self._unsettled: dict[int, GroupContent] = {}
        self._in_outbox: dict[int, tuple[PackedRollout, ...]] = {}
        self._outbox_size = 0
        self._lost = _Shelf()
        self._others = _Shelf()
        self._allowances = {True: Allowance(share=0.1), False: Allowance(share=0.02)}
        self._order = ended_before

    @property
    def size(self) -> int:
        """Bytes of all packed contents."""
        return self._lost.size + self._others.size + self._outbox_size

    def keep(self, content: GroupContent) -> None:
        self._unsettled[content.group_id] = content
        if len(self._unsettled) > _MAX_UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]

    def enqueued(self, group_id: int) -> None:
        # The oldest leave the outbox first and are what is looked at next, so a full share takes no newer ones in.
        if self._outbox_size >= self._max_bytes // 4:
            self._unsettled.pop(group_id, None)
        elif (rollouts := self._pack(group_id, lost=False)) is not None:
            self._in_outbox[group_id] = rollouts
            self._outbox_size += _size(rollouts)
            self._make_room()

    def ended(self, group: EndedGroup) -> int:
        row = group.row
        lost = row.outcome in LOST_OUTCOMES
        rollouts = self._pack(row.group_id, lost)
        if rollouts is None and (rollouts := self._in_outbox.pop(row.group_id, None)) is not None:
            self._outbox_size -= _size(rollouts)
        if row.outcome is Outcome.REQUEUED:
            rollouts = None
        if rollouts and not row.scores:
            group = replace(group, row=with_scores_of_content(row, rollouts))
        self._order += 1
        (self._lost if lost else self._others).add(KeptGroup(self._order, group, rollouts))
        self._make_room()
        return self._order

    def page(self, wanted: GroupFilter, older_than: int | None, limit: int, above: int = 0) -> GroupPage:
        newest_first = takewhile(lambda group: group.order > above, self._newest_first())
        if not wanted.by_time:
            rows = sorted_rows((g.row for g in newest_first if wanted.matches(g.ended.row, g.says)), wanted.order)
            return sorted_page(rows, older_than, limit)
        total = sum(wanted.matches(group.ended.row, group.says) for group in newest_first)
        older = takewhile(lambda group: group.order > above, self._older_than(older_than))
        matching = (group for group in older if wanted.matches(group.ended.row, group.says))
        rows = [group.row for _, group in zip(range(limit), matching, strict=False)]
        return GroupPage(
            rows=tuple(rows),
            older_than=rows[-1].group_id if rows and next(matching, None) is not None else None,
            total=total,
        )

    def find(self, group_id: int) -> KeptGroup | None:
        return self._lost.groups.get(group_id) or self._others.groups.get(group_id)

    def _newest_first(self) -> Iterator[KeptGroup]:
        return heapq.merge(
            reversed(self._lost.groups.values()), reversed(self._others.groups.values()),
            key=lambda group: group.order, reverse=True,
        )  # fmt: skip

    def _older_than(self, group_id: int | None) -> Iterator[KeptGroup]:
        if group_id is None:
            return self._newest_first()
        known = self.find(group_id)
        if known is not None:
            return (group for group in self._newest_first() if group.order < known.order)
        # It had to make room. Numbers follow the order of starting, which is nearly that of ending.
        return (group for group in self._newest_first() if group.ended.row.group_id < group_id)

    def _pack(self, group_id: int, lost: bool) -> tuple[PackedRollout, ...] | None:
        content = self._unsettled.pop(group_id, None)
        if content is None or not self._allowances[lost].has_some():
            return None
        with self._allowances[lost].spending():
            rollouts = pack(content)
        return rollouts if _size(rollouts) <= self._max_bytes // 4 else None

    def _make_room(self) -> None:
        while self.size > self._max_bytes:
            takes_more_than_its_share = self._others.size > self._max_bytes // 4
            shelf = self._others if takes_more_than_its_share or not self._lost.with_content else self._lost
            shelf.drop_oldest_content()
        while len(self._lost.groups) + len(self._others.groups) > self._max_groups:
            takes_more_than_its_share = len(self._others.groups) > self._max_groups // 4
            shelf = self._others if takes_more_than_its_share or not self._lost.groups else self._lost
            shelf.drop_oldest()


def sorted_page(rows: Sequence[EndedRow], after: int | None, limit: int) -> GroupPage:
    """A page of rows in another order than that of time; `after` counts those of the pages before."""
    begin = after or 0
    end = begin + limit
    return GroupPage(tuple(rows[begin:end]), end if end < len(rows) else None, len(rows))


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _size(rollouts: tuple[PackedRollout, ...]) -> int:
    return sum(rollout.size for rollout in rollouts)


def with_scores_of_content(row: EndedRow, rollouts: tuple[PackedRollout, ...]) -> EndedRow:
    """A malformed group was never scored by the runtime, but its content has what the environment gave."""
    shown = rollouts[:MAX_SCORES]
    return replace(
        row,
        scores=finite([rollout.score for rollout in shown if rollout.score is not None]),
        completion_tokens=tuple(trained_tokens(rollout) for rollout in shown),
    )
