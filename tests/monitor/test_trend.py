"""The curve over the run, and the means of twenty groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.monitor.trend import MAX_POINTS, Stretches, Trend


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
