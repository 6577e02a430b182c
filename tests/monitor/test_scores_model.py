"""Scores over a window of the newest groups."""

from __future__ import annotations

import math

import pytest

from atropos_tui.monitor.scores_model import WINDOW_GROUPS, WINDOW_ROLLOUTS
from atropos_tui.monitor.snapshot import ScoresSection
from tests.monitor.run_scenario import Scenario


def test_an_empty_run_has_no_scores() -> None:
    assert Scenario().snapshot().scores == ScoresSection()


def test_within_and_between_spread_tell_different_things() -> None:
    run = Scenario()
    run.run_started()
    run.scored_group(0.0, 1.0)
    run.scored_group(0.0, 1.0)
    scores = run.snapshot().scores
    assert (scores.within_std, scores.between_std) == (0.5, 0.0)

    run = Scenario()
    run.run_started()
    run.scored_group(0.0, 0.0)
    run.scored_group(1.0, 1.0)
    scores = run.snapshot().scores
    assert (scores.within_std, scores.between_std) == (0.0, 0.5)
    assert scores.zero_advantage_share == 1.0


def test_groups_that_are_skipped_for_identical_scores_count_as_zero_advantage() -> None:
    run = Scenario()
    run.run_started()
    run.skip(run.scored_group(1.0, 1.0, 1.0, 1.0))
    run.delivered_group(0.0, 1.0, 0.5, 0.5)
    run.delivered_group(0.1, 0.1, 0.2, 0.1)
    run.delivered_group(0.3, 0.1 + 0.2, 0.3, 0.3)
    assert run.snapshot().scores.zero_advantage_share == 0.5


def test_the_environments_own_tolerance_decides_what_is_identical() -> None:
    run = Scenario()
    run.run_started(config={"score_tolerance": 0.1})
    run.scored_group(0.50, 0.55)
    assert run.snapshot().scores.zero_advantage_share == 1.0


def test_a_group_of_one_is_not_zero_advantage() -> None:
    run = Scenario()
    run.run_started()
    run.scored_group(0.5)
    assert run.snapshot().scores.zero_advantage_share == 0.0


def test_old_groups_leave_the_window_but_not_the_totals() -> None:
    run = Scenario()
    run.run_started()
    for _ in range(WINDOW_GROUPS):
        run.scored_group(0.0, 0.2)
    for _ in range(WINDOW_GROUPS):
        run.scored_group(0.8, 1.0, tokens=30, truncated=1)
    scores = run.snapshot().scores
    assert (scores.groups, scores.rollouts, scores.window) == (2 * WINDOW_GROUPS, 4 * WINDOW_GROUPS, WINDOW_GROUPS)
    assert (scores.low, scores.high) == (0.8, 1.0)
    assert scores.mean == pytest.approx(0.9)
    assert scores.spikes == ((0.8, WINDOW_GROUPS), (1.0, WINDOW_GROUPS))
    assert scores.completion_tokens == 30
    assert scores.truncated_share == 0.5
    assert sum(point.groups for point in scores.trend) == 2 * WINDOW_GROUPS


def test_a_huge_group_takes_no_more_room_than_the_window_has() -> None:
    run = Scenario()
    run.run_started()
    run.scored_group(0.5)
    run.scored_group(*(index / 20_000 for index in range(20_000)))
    scores = run.snapshot().scores
    assert scores.window == 1
    assert sum(scores.bins) == WINDOW_ROLLOUTS
    assert scores.rollouts == 20_001
    assert scores.mean == pytest.approx(0.5, abs=0.001)


def test_scores_that_are_no_numbers_are_left_out() -> None:
    run = Scenario()
    run.run_started()
    run.scored_group(math.nan, 0.5, math.inf, -math.inf)
    run.scored_group(math.nan, math.nan)
    run.scored_group(1e308, -1e308)
    scores = run.snapshot().scores
    assert scores.groups == 2
    assert math.isfinite(scores.mean)
    assert math.isfinite(scores.between_std)
