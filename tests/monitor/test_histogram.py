"""The score histogram: fixed edges, exact values told apart, nothing lost between them."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.monitor.histogram import BINS, Histogram, nice_range


def test_scores_from_zero_to_one_have_twenty_bins_that_never_move() -> None:
    histogram = Histogram()
    for hundredth in range(0, 101, 7):
        histogram.add([hundredth / 100])
        view = histogram.view()
        assert view.edges == pytest.approx([index / 20 for index in range(21)])
    assert sum(view.bins) == 15


@pytest.mark.parametrize(
    ("low", "high", "edges"),
    [
        (0.0, 0.0, (0.0, 1.0)),
        (-0.2, 0.9, (-1.0, 1.0)),
        (-1.0, -1.0, (-1.0, 1.0)),
        (0.0, 1.5, (0.0, 2.0)),
        (3.0, 70.0, (0.0, 100.0)),
        (-350.0, -300.0, (-500.0, 0.0)),
        (-3.0, 0.5, (-5.0, 5.0)),
        (0.0, 1e300, (0.0, 1e12)),
    ],
)
def test_edges_grow_in_nice_steps(low: float, high: float, edges: tuple[float, float]) -> None:
    assert nice_range(low, high) == edges


def test_a_score_outside_the_edges_puts_the_kept_ones_into_new_bins() -> None:
    histogram = Histogram()
    histogram.add([0.25, 0.75])
    histogram.add([1.75])
    view = histogram.view()
    assert (view.edges[0], view.edges[-1]) == (0.0, 2.0)
    assert [index for index, count in enumerate(view.bins) if count] == [2, 7, 17]


def test_exact_values_that_hold_many_rollouts_are_spikes_and_in_no_bin() -> None:
    histogram = Histogram()
    histogram.add([0.0] * 10 + [1.0] * 5 + [0.3, 0.1 + 0.2, 0.3] + [0.41, 0.42])
    view = histogram.view()
    assert view.spikes == ((0.0, 10), (1.0, 5), (0.3, 3))
    assert sum(view.bins) == 2
    assert view.bins[8] == 2


def test_fewer_than_three_equal_values_are_no_spike_however_few_there_are() -> None:
    histogram = Histogram()
    histogram.add([0.5, 0.5])
    assert histogram.view().spikes == ()
    assert sum(histogram.view().bins) == 2


def test_a_value_that_holds_less_than_a_twentieth_is_no_spike() -> None:
    histogram = Histogram()
    histogram.add([index / 1000 for index in range(100)] + [0.5] * 5)
    assert histogram.view().spikes == ()
    histogram.add([0.5])
    assert histogram.view().spikes == ((0.5, 6),)


def test_an_outlier_that_has_left_gives_its_room_back() -> None:
    histogram = Histogram()
    histogram.add([0.25, 0.5])
    histogram.add([4000.0])
    assert histogram.view().edges[-1] == 5000.0
    histogram.settle()
    assert histogram.view().edges[-1] == 5000.0
    histogram.remove([4000.0])
    histogram.settle()
    assert histogram.view().edges[-1] == 1.0
    assert sum(histogram.view().bins) == 2


scores = st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1.0, 0.5]), st.floats(-1e9, 1e9), st.just(1e50))


@given(st.lists(st.lists(scores, min_size=1, max_size=8), max_size=40), st.integers(1, 10))
def test_every_value_in_the_window_is_counted_exactly_once(groups: list[list[float]], window: int) -> None:
    histogram = Histogram()
    kept: deque[list[float]] = deque()
    for group in groups:
        histogram.add(group)
        kept.append(group)
        if len(kept) > window:
            histogram.remove(kept.popleft())
            histogram.settle()
        view = histogram.view()
        assert sum(view.bins) + sum(count for _, count in view.spikes) == sum(map(len, kept))
        assert min(view.bins) >= 0
        assert len(view.bins) == BINS == len(view.edges) - 1
