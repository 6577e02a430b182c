"""How many groups may be in flight, and why not more: arithmetic on numbers, without a loop or a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import ThrottleReason
from atropos_tui.runtime.config import BaseEnvConfig, EvalHandlingEnum


@dataclass(frozen=True, slots=True)
class TrainerQueue:
    """What the trajectory API said last. Sizes are in groups of this environment's size, `max_group_size` in sequences.

    `unseen` counts finished groups that may not be part of these sizes: they were in the outbox then, or came later.
    """

    batch_size: int
    queue_size: int = 0
    self_queue_size: int = 0
    max_group_size: int = 1
    unallocated_fraction: float = 1.0
    unseen: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """`reason` is what holds further groups back once `groups` are in flight; `detail` has its numbers in words."""

    groups: int
    reason: ThrottleReason
    detail: str

    def or_tighter(self, other: Limit | None) -> Limit:
        return other if other is not None and other.groups < self.groups else self


def derived_batch_size(config: BaseEnvConfig, unallocated_fraction: float) -> int:
    """The sequences of a batch that this environment may fill: its own minimum share and what no other has claimed."""
    if config.batch_size == -1:
        return -1
    return int(config.batch_size * (unallocated_fraction + (config.min_batch_allocation or 0.0)))


def queue_limit(config: BaseEnvConfig, unallocated_fraction: float) -> int:
    """Groups that may wait for the trainer; -1 for no limit."""
    if config.max_batches_offpolicy <= 0 or config.batch_size == -1:
        return -1
    return config.max_batches_offpolicy * derived_batch_size(config, unallocated_fraction) // config.group_size


def worker_limit(config: BaseEnvConfig, max_num_workers: int, evaluating: bool) -> Limit:
    """The limit that the number of workers sets, lower during an evaluation if the environment wants it so."""
    if evaluating and config.eval_handling is EvalHandlingEnum.STOP_TRAIN:
        return Limit(0, ThrottleReason.EVAL, "an evaluation runs, training waits for its end (STOP_TRAIN)")
    if evaluating and config.eval_handling is EvalHandlingEnum.LIMIT_TRAIN:
        share = int(max_num_workers * config.eval_limit_ratio)
        return Limit(
            share, ThrottleReason.EVAL, f"an evaluation runs, {share} of {max_num_workers} workers (LIMIT_TRAIN)"
        )
    if max_num_workers <= 0:
        return Limit(0, ThrottleReason.MAX_NUM_WORKERS, "no workers: max_num_workers is 0, or there is no server")
    return Limit(max_num_workers, ThrottleReason.MAX_NUM_WORKERS, f"all {max_num_workers} workers are busy")


def off_policy_limit(config: BaseEnvConfig, queue: TrainerQueue) -> Limit | None:
    """The limit that `max_batches_offpolicy` sets on groups in flight; None when there is none."""
    allowed = queue_limit(config, queue.unallocated_fraction)
    if allowed == -1:
        return None
    room = allowed - queue.queue_size - queue.unseen
    if config.min_batch_allocation is not None:
        room = max(room, _own_share(config, queue) - queue.self_queue_size - queue.unseen)
    detail = f"{queue.queue_size}/{allowed} groups"
    if queue.unseen:
        detail += f", {queue.unseen} on the way"
    detail += f", max_batches_offpolicy {config.max_batches_offpolicy}"
    return Limit(max(0, room), ThrottleReason.OFF_POLICY_LIMIT, detail)


def _own_share(config: BaseEnvConfig, queue: TrainerQueue) -> int:
    """Groups that keep the minimum share of each batch filled, in packs of the largest group that others send."""
    largest = max(queue.max_group_size, config.group_size)
    wanted = (config.min_batch_allocation or 0.0) * config.batch_size * config.max_batches_offpolicy
    packs = math.ceil(wanted / largest) + largest // config.group_size
    return math.ceil(packs * largest / config.group_size)
