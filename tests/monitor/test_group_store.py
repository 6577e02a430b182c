"""Ended groups with their contents: pages, filters, and what makes room first."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from atropos_tui.ledger import GroupContent, Rollout
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.allowance import Allowance
from atropos_tui.monitor.group_detail import RolloutDetail
from atropos_tui.monitor.group_store import GroupFilter, MemoryGroupStore
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.snapshot import EndedRow
from atropos_tui.monitor.wire import read_detail, read_page, to_json

ANY = GroupFilter()


def letters(ids: Sequence[int]) -> list[str]:
    return [chr(ord("a") + token % 26) for token in ids]


def content(group_id: int, tokens: int = 100, message: str = "hello") -> GroupContent:
    rollout = Rollout(
        score=0.5,
        tokens=list(range(tokens)),
        masks=[-100] * (tokens // 2) + list(range(tokens // 2, tokens)),
        logprobs=[1.0] * (tokens // 2) + [-0.25] * (tokens - tokens // 2),
        messages=[{"role": "user", "content": message}],
        finish_reason="stop",
    )
    return GroupContent(group_id, "item", (rollout, rollout))


def ended(group_id: int, outcome: Outcome = Outcome.SKIPPED, reason: str = "identical_scores") -> EndedGroup:
    row = EndedRow(
        group_id=group_id, at=1.8e9 + group_id, outcome=outcome, reason=reason, split="", item="item",
        scores=(), completion_tokens=(), step=0, seconds=1.0,
    )  # fmt: skip
    return EndedGroup(row, error="what broke", traceback="Traceback …", body="")


def end_with_content(
    store: MemoryGroupStore, group_id: int, outcome: Outcome = Outcome.SKIPPED, tokens: int = 100
) -> None:
    store.keep(content(group_id, tokens))
    if outcome is Outcome.DELIVERED:
        store.enqueued(group_id)
    store.ended(ended(group_id, outcome))


def ids(
    store: MemoryGroupStore, wanted: GroupFilter = ANY, older_than: int | None = None, limit: int = 50
) -> list[int]:
    return [row.group_id for row in store.page(wanted, older_than, limit).rows]


def test_a_group_reads_back_as_it_was() -> None:
    store = MemoryGroupStore()
    end_with_content(store, 1, tokens=4)
    group = store.find(1)
    assert group is not None
    detail = read_detail(to_json(group.detail(letters)))
    assert detail.row.has_content
    assert (detail.error, detail.traceback) == ("what broke", "Traceback …")
    assert detail.rollouts[0] == RolloutDetail(
        score=0.5,
        tokens=(0, 1, 2, 3),
        pieces=("a", "b", "c", "d"),
        masks=(-100, -100, 2, 3),
        logprobs=(1.0, 1.0, -0.25, -0.25),
        messages=({"role": "user", "content": "hello"},),
        finish_reason="stop",
    )


def test_what_happens_to_messages_later_does_not_change_what_was_kept() -> None:
    store = MemoryGroupStore()
    message = {"role": "user", "content": "as it was"}
    store.keep(GroupContent(1, "item", (Rollout(0.0, messages=[message]),)))
    store.ended(ended(1))
    message["content"] = "changed"
    group = store.find(1)
    assert group is not None
    assert group.detail(letters).rollouts[0].messages == ({"role": "user", "content": "as it was"},)


def test_malformed_contents_are_kept_as_far_as_they_can_be_read() -> None:
    store = MemoryGroupStore()
    endless: dict[str, object] = {"role": "user"}
    endless["itself"] = endless
    rollouts = (
        Rollout(math.nan, tokens=[1, 2, None, 4], masks=[1, 2**40], logprobs=["x"]),  # type: ignore[list-item]
        Rollout(math.inf, messages=[{"role": "user", "content": "\ud800 \x1b[2J", "image": object(), "n": 2**80}]),
        Rollout(None, messages=[endless]),
    )
    store.keep(GroupContent(1, "item", rollouts))
    store.ended(ended(1, reason="malformed"))
    group = store.find(1)
    assert group is not None
    detail = read_detail(to_json(group.detail(letters)))
    assert (detail.rollouts[0].tokens, detail.rollouts[0].masks, detail.rollouts[0].logprobs) == ((1, 2), (1,), ())
    assert math.isnan(detail.rollouts[0].score or 0.0)
    assert detail.rollouts[1].messages[0]["content"] == "\\ud800 \x1b[2J"
    assert detail.rollouts[2].messages[0]["role"] == "unreadable"
    assert detail.row.scores == ()


def test_a_group_that_was_never_scored_shows_the_scores_of_its_content() -> None:
    store = MemoryGroupStore()
    end_with_content(store, 1, tokens=10)
    (row,) = store.page(ANY, None, 10).rows
    assert (row.scores, row.completion_tokens) == ((0.5, 0.5), (5, 5))


@pytest.mark.parametrize("pieces", [lambda ids: 1 / 0, lambda ids: ["too", "few"]])
def test_tokens_that_cannot_be_decoded_are_shown_without_text(pieces: object) -> None:
    store = MemoryGroupStore()
    end_with_content(store, 1)
    group = store.find(1)
    assert group is not None
    detail = group.detail(pieces)  # type: ignore[arg-type]
    assert len(detail.rollouts[0].tokens) == 100
    assert detail.rollouts[0].pieces == ()


def test_pages_are_newest_first_in_order_of_ending_and_meet_without_gap_or_overlap() -> None:
    store = MemoryGroupStore()
    order = [3, 1, 2, 7, 5, 4, 9, 8, 6]
    for group_id in order:
        store.ended(ended(group_id, Outcome.DELIVERED if group_id % 2 else Outcome.SKIPPED))
    pages = []
    older_than = None
    while True:
        page = read_page(to_json(store.page(ANY, older_than, 4)))
        pages.append([row.group_id for row in page.rows])
        assert page.total == len(order)
        older_than = page.older_than
        if older_than is None:
            break
    assert pages == [[6, 8, 9, 4], [5, 7, 2, 1], [3]]


def test_a_filter_lists_and_counts_only_what_it_names() -> None:
    store = MemoryGroupStore()
    for group_id in range(1, 31):
        outcome = Outcome.FAILED if group_id % 3 == 0 else Outcome.SKIPPED
        store.ended(ended(group_id, outcome, reason=f"reason{group_id % 2}"))
    failed = store.page(GroupFilter(outcome="failed"), None, 3)
    assert ([row.group_id for row in failed.rows], failed.total, failed.older_than) == ([30, 27, 24], 10, 24)
    assert ids(store, GroupFilter(outcome="failed", reason="reason1"), older_than=22) == [21, 15, 9, 3]
    assert ids(store, GroupFilter(reason="no such")) == []


def test_delivered_groups_make_room_first_and_lost_ones_stay() -> None:
    store = MemoryGroupStore(max_groups=40)
    for group_id in range(1, 21):
        store.ended(ended(group_id))
    for group_id in range(21, 101):
        store.ended(ended(group_id, Outcome.DELIVERED))
    kept = ids(store, limit=200)
    assert len(kept) == 40
    assert set(range(1, 21)) <= set(kept)
    assert kept[:20] == list(range(100, 80, -1))


def test_lost_groups_leave_a_quarter_to_the_others() -> None:
    store = MemoryGroupStore(max_groups=40)
    for group_id in range(1, 21):
        store.ended(ended(group_id, Outcome.DELIVERED))
    for group_id in range(21, 101):
        store.ended(ended(group_id))
    assert len(ids(store, GroupFilter(outcome="delivered"), limit=200)) == 10
    assert len(ids(store, GroupFilter(outcome="skipped"), limit=200)) == 30


def test_contents_make_room_before_lines_do() -> None:
    store = MemoryGroupStore(max_bytes=100_000)
    for group_id in range(1, 101):
        end_with_content(store, group_id, Outcome.DELIVERED if group_id % 2 else Outcome.SKIPPED, tokens=500)
        assert store.size <= 100_000
    rows = store.page(ANY, None, 200).rows
    assert len(rows) == 100
    assert rows[0].has_content
    assert not rows[-1].has_content
    kept = [row for row in rows if row.has_content]
    assert [row.outcome for row in kept].count(Outcome.SKIPPED) > [row.outcome for row in kept].count(Outcome.DELIVERED)
    group = store.find(1)
    assert group is not None
    assert group.detail(letters).rollouts == ()


def test_a_group_too_large_to_keep_is_listed_without_content() -> None:
    store = MemoryGroupStore(max_bytes=10_000)
    end_with_content(store, 1, tokens=5_000)
    (row,) = store.page(ANY, None, 10).rows
    assert not row.has_content
    assert store.size == 0


def test_an_outbox_that_never_empties_takes_bounded_room() -> None:
    store = MemoryGroupStore(max_bytes=100_000)
    for group_id in range(1, 200):
        store.keep(content(group_id, tokens=100))
        store.enqueued(group_id)
    assert 0 < store.size <= 30_000
    store.ended(ended(1, Outcome.DELIVERED))
    store.ended(ended(199, Outcome.DELIVERED))
    assert [row.has_content for row in store.page(ANY, None, 10).rows] == [False, True]


def test_contents_whose_group_never_ends_take_bounded_room() -> None:
    store = MemoryGroupStore()
    for group_id in range(1, 1000):
        store.keep(content(group_id))
    store.ended(ended(1))
    store.ended(ended(999))
    assert [row.has_content for row in store.page(ANY, None, 10).rows] == [True, False]


def test_a_page_below_a_group_that_had_to_make_room_still_goes_on() -> None:
    store = MemoryGroupStore(max_groups=8)
    for group_id in range(1, 5):
        store.ended(ended(group_id))
    for group_id in range(5, 30):
        store.ended(ended(group_id, Outcome.DELIVERED))
    assert ids(store, older_than=20) == [4, 3, 2, 1]


def test_work_beyond_the_allowance_waits_until_time_has_passed() -> None:
    now, worked = 0.0, 0.0
    allowance = Allowance(share=0.1, burst=1.0, now=lambda: now, work=lambda: worked)
    assert allowance.has_some()
    with allowance.spending():
        worked += 1.5
    assert not allowance.has_some()
    now += 4.9
    assert not allowance.has_some()
    now += 0.2
    assert allowance.has_some()
    now += 1000
    assert allowance.has_some()
    with allowance.spending():
        worked += 1.05
    assert not allowance.has_some()
