"""How many groups may be in flight: the arithmetic of workers, evaluations, off-policy limit and minimum shares."""

from __future__ import annotations

from typing import Any

import pytest

from atropos_tui.ledger.outcomes import ThrottleReason
from atropos_tui.runtime.config import BaseEnvConfig, EvalHandlingEnum
from atropos_tui.runtime.throttle import (
    Limit,
    TrainerQueue,
    derived_batch_size,
    off_policy_limit,
    queue_limit,
    worker_limit,
)


def config(**fields: Any) -> BaseEnvConfig:
    return BaseEnvConfig(**{"group_size": 4, "batch_size": 64, "max_batches_offpolicy": 3, **fields})


def room(queue: TrainerQueue, **fields: Any) -> int:
    limit = off_policy_limit(config(**fields), queue)
    assert limit is not None
    return limit.groups


def test_the_room_is_what_may_wait_less_what_waits_and_is_on_the_way():
    assert room(TrainerQueue(64)) == 48
    assert room(TrainerQueue(64, queue_size=40)) == 8
    assert room(TrainerQueue(64, queue_size=40, unseen=5)) == 3
    assert room(TrainerQueue(64, queue_size=400)) == 0


def test_the_numbers_are_told_in_words():
    limit = off_policy_limit(config(), TrainerQueue(64, queue_size=40, unseen=5))
    assert limit == Limit(
        3,
        ThrottleReason.OFF_POLICY_LIMIT,
        "40/48 groups, 5 on the way, max_batches_offpolicy 3",
    )


@pytest.mark.parametrize("batches", [0, -1])
def test_no_batches_off_policy_is_no_limit(batches: int):
    assert off_policy_limit(config(max_batches_offpolicy=batches), TrainerQueue(64, queue_size=10_000)) is None
    assert queue_limit(config(max_batches_offpolicy=batches), 1.0) == -1


def test_what_others_claimed_as_their_minimum_is_not_ours():
    assert derived_batch_size(config(), 0.5) == 32
    assert room(TrainerQueue(64, unallocated_fraction=0.5)) == 24
    assert derived_batch_size(config(min_batch_allocation=0.25), 0.5) == 48
    assert derived_batch_size(config(batch_size=-1), 0.5) == -1


def test_a_minimum_share_is_kept_filled_though_others_fill_the_queue():
    full_of_others = TrainerQueue(64, queue_size=48, self_queue_size=0, max_group_size=4)
    assert room(full_of_others) == 0
    share = room(full_of_others, min_batch_allocation=0.25)
    assert share >= 0.25 * 64 * 3 / 4
    filled = TrainerQueue(64, queue_size=48, self_queue_size=share, max_group_size=4)
    assert room(filled, min_batch_allocation=0.25) <= room(filled) + 12


def test_an_evaluation_lowers_the_workers_as_the_environment_wants_it():
    stop, share, none = EvalHandlingEnum.STOP_TRAIN, EvalHandlingEnum.LIMIT_TRAIN, EvalHandlingEnum.NONE
    limits = [worker_limit(config(eval_handling=handling, eval_limit_ratio=0.5), 8, True) for handling in (stop, share)]
    assert [(limit.groups, limit.reason) for limit in limits] == [(0, ThrottleReason.EVAL), (4, ThrottleReason.EVAL)]
    assert worker_limit(config(eval_handling=none), 8, True).groups == 8
    assert worker_limit(config(eval_handling=stop), 8, False).groups == 8


def test_the_tighter_of_two_limits_counts_and_the_first_of_equals():
    wide, tight = Limit(8, ThrottleReason.MAX_NUM_WORKERS, ""), Limit(3, ThrottleReason.PAUSED, "")
    assert wide.or_tighter(tight) is tight
    assert tight.or_tighter(wide) is tight
    assert wide.or_tighter(None) is wide
    assert tight.or_tighter(Limit(3, ThrottleReason.EVAL, "")) is tight
