"""Failures in a row make launching rest, ever longer; one success ends that."""

from __future__ import annotations

import pytest

from atropos_tui.runtime.backoff import Backoff, FailureStreak


def test_waits_double_up_to_the_ceiling_and_begin_again_after_a_reset():
    backoff = Backoff(first=0.1, ceiling=1.0)
    assert [backoff.next_wait() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next_wait() == 0.1


def test_waits_stay_at_the_ceiling_for_ever():
    backoff = Backoff(first=0.1, ceiling=30.0)
    assert max(backoff.next_wait() for _ in range(5000)) == 30.0


def test_single_failures_cost_nothing():
    streak = FailureStreak()
    for moment in range(10):
        streak.failed("KeyError", float(moment))
        streak.failed("KeyError", float(moment))
        assert streak.resting(float(moment)) == 0
        assert not streak.probing
        streak.succeeded()


def test_from_the_third_failure_in_a_row_each_one_doubles_the_rest():
    streak = FailureStreak()
    now = 0.0
    rests = []
    for _ in range(12):
        streak.failed("KeyError: 'x'", now)
        rests.append(streak.resting(now))
        now += streak.resting(now)
    assert rests[:6] == pytest.approx([0, 0, 0.1, 0.2, 0.4, 0.8])
    assert rests[-1] == pytest.approx(30.0)
    assert streak.probing


def test_failures_of_groups_that_were_under_way_do_not_lengthen_the_rest():
    streak = FailureStreak()
    for _ in range(8):
        streak.failed("KeyError", 0.0)
    assert streak.count == 3
    assert streak.resting(0.0) == 0.1


def test_a_success_ends_the_rest():
    streak = FailureStreak()
    for _ in range(3):
        streak.failed("KeyError", 0.0)
    streak.succeeded()
    assert not streak.probing
    assert streak.resting(0.0) == 0
