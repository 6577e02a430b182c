"""Sliding windows: what is in them, and what has left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.monitor.windows import RecentAmounts, RecentDurations, RecentShare, significant


def test_amounts_leave_after_a_minute() -> None:
    recent = RecentAmounts(60)
    recent.add(1000.0, 5)
    recent.add(1030.5, 2)
    assert recent.total(1059.9) == 7
    assert recent.total(1060.0) == 2
    assert recent.total(1090.0) == 0


def test_the_rate_of_a_young_window_is_over_its_own_age() -> None:
    recent = RecentAmounts(60)
    for second in range(10):
        recent.add(1000.0 + second, 3)
    assert recent.per_second(1010.0) == recent.per_second(1010.9) == 3.0
    assert recent.per_second(1009.0 + 60) == 0.0


def test_a_share_is_of_the_last_minute_or_of_a_younger_age() -> None:
    held = RecentShare(60)
    assert held.share(999.0) == 0.0
    held.note(1000.0, holds=True)
    held.note(1002.5, holds=False)
    assert held.share(1010.0) == 0.25
    held.note(1050.0, holds=True)
    assert held.share(1062.0) == pytest.approx(12.5 / 60, abs=0.01)
    assert held.share(1200.0) == 1.0
    held.note(1200.0, holds=False)
    assert held.share(1300.0) == 0.0


def test_a_share_counts_very_short_times_too() -> None:
    held = RecentShare(60)
    for tick in range(4_000):
        held.note(1000.0 + tick / 4_000, holds=tick % 4 == 0)
    assert held.share(1001.0) == 0.25


def test_complete_seconds_are_oldest_first_and_without_the_running_one() -> None:
    recent = RecentAmounts(4)
    recent.add(1000.0, 1)
    recent.add(1001.0, 2)
    recent.add(1002.0, 3)
    assert recent.by_second(1002.5) == (0, 1, 2)
    assert recent.by_second(1003.0) == (1, 2, 3)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 9)), max_size=60), st.floats(0, 200))
def test_amounts_agree_with_a_list_of_all_of_them(steps: list[tuple[float, int]], wait: float) -> None:
    recent = RecentAmounts(60)
    now = 1000.0
    added = []
    for pause, amount in steps:
        now += pause
        recent.add(now, amount)
        added.append((int(now), amount))
    now += wait
    assert recent.total(now) == sum(amount for second, amount in added if int(now) - second < 60)


def test_percentiles_are_by_nearest_rank_and_forget_the_old() -> None:
    durations = RecentDurations(size=100, max_age=60.0)
    assert durations.percentiles(1000.0) == (0.0, 0.0)
    durations.add(1000.0, 50.0)
    for hundredth in range(1, 101):
        durations.add(1001.0, hundredth / 100)
    assert durations.percentiles(1001.0) == (0.5, 0.95)
    durations.add(1050.0, 7.0)
    assert durations.percentiles(1062.0) == (7.0, 7.0)


@pytest.mark.parametrize(("value", "shown"), [(0.0, 0.0), (1234.56, 1230.0), (0.012345, 0.0123), (float("nan"), 0.0)])
def test_numbers_are_rounded_to_what_a_reader_could_tell(value: float, shown: float) -> None:
    assert significant(value) == pytest.approx(shown)
