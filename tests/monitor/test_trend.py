"""The curve over the run, and the means of twenty groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.monitor.trend import MAX_POINTS, RecentTrend, Stretches, Trend


@given(st.integers(0, 3000))
def test_the_trend_has_all_groups_in_few_points_of_equal_weight(groups: int) -> None:
    trend = Trend()
    for number in range(groups):
        trend.add(at=1.8e9 + number, mean=number / 3000, completion_tokens=20.0)
    points = trend.points()
    assert len(points) <= MAX_POINTS
    assert sum(point.groups for point in points) == groups
    assert len({point.groups for point in points[:-1]}) <= 1
    assert [point.at for point in points] == sorted(point.at for point in points)


def test_a_long_run_keeps_its_shape() -> None:
    trend = Trend()
    for number in range(100_000):
        trend.add(at=float(number), mean=number / 100_000, completion_tokens=100.0 + number / 1000)
    points = trend.points()
    assert MAX_POINTS / 2 <= len(points) <= MAX_POINTS
    assert points[0].mean == pytest.approx(0.0, abs=0.01)
    assert points[-1].mean == pytest.approx(1.0, abs=0.01)
    assert points[-1].completion_tokens == pytest.approx(200.0, abs=1.0)
    for point in points:
        assert point.low <= point.mean <= point.high


def test_the_last_minutes_of_a_long_run_stay_fine() -> None:
    trend = RecentTrend()
    for number in range(30_000):
        trend.add(at=1.8e9 + number, mean=number / 30_000, completion_tokens=20.0)
    points = trend.points()
    ages = [points[-1].at - point.at for point in points]
    assert sum(age <= 120 for age in ages) == pytest.approx(30, abs=1)
    assert sum(age <= 600 for age in ages) == pytest.approx(54, abs=2)
    assert len(points) == pytest.approx(104, abs=3)
    assert max(ages) == pytest.approx(3_600, abs=60)
    assert sum(point.groups for point in points) == pytest.approx(3_600, abs=60)
    assert ages == sorted(ages, reverse=True)
    assert points[-1].mean == pytest.approx(1.0, abs=0.001)


@given(st.lists(st.floats(-5_000, 5_000), max_size=400))
def test_the_recent_trend_has_few_points_whatever_the_clock_does(jumps: list[float]) -> None:
    trend, at = RecentTrend(), 1.8e9
    for jump in jumps:
        at += jump
        trend.add(at=at, mean=0.5, completion_tokens=20.0)
        assert len(trend.points()) <= MAX_POINTS


def test_twenties_are_consecutive_groups_in_order_of_completion() -> None:
    stretches = Stretches()
    for _ in range(19):
        stretches.add(0.0)
    assert (stretches.first, stretches.best, stretches.last) == (None, None, None)
    for _ in range(1 + 20):
        stretches.add(1.0)
    for _ in range(10):
        stretches.add(0.5)
    assert stretches.first == pytest.approx(1 / 20)
    assert stretches.best == pytest.approx(1.0)
    assert stretches.last == pytest.approx(0.75)
