"""`GET /inspect/…`: the run looked at without taking anything. Answers are bounded whatever the run does."""

from __future__ import annotations

import time
from itertools import islice

from pydantic import BaseModel

from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.explanations import RunWarning, Why, warnings, why
from atropos_tui.trajectory_api.group import QueuedGroup
from atropos_tui.trajectory_api.queue import GroupQueue
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.wire import Registration

_MOST_READY_BATCHES = 8


class TrainerView(BaseModel):
    """The registration in force, if any. `started` is whether the trainer has asked for a batch."""

    registration: Registration | None
    started: bool
    current_step: int


class EnvironmentView(BaseModel):
    """One registered environment; times ago are in seconds (null: never), `minimum` in sequences of each batch."""

    env_id: int
    wandb_name: str
    connected: bool
    counts: bool
    silent_for: float
    control_url: str | None
    group_size: int
    weight: float
    minimum: int
    queued_groups: int
    queued_sequences: int
    buffered_sequences: int
    accepted_groups: int
    accepted_sequences: int
    delivered_groups: int
    last_group_ago: float | None


class LineView(BaseModel):
    """The groups of one size that one environment (null: none that is known) has in a queue; age in seconds."""

    env_id: int | None
    size: int
    groups: int
    sequences: int
    oldest_age: float


class QueueView(BaseModel):
    """`bytes` is the memory that the texts take: an estimate from the oldest and the newest group of each line."""

    groups: int
    sequences: int
    oldest_age: float
    bytes: int
    lines: list[LineView]


class BufferView(BaseModel):
    """Groups of one environment that wait for others to make up its `group_size` together."""

    env_id: int
    group_size: int
    waiting: QueueView


class BatchesView(BaseModel):
    """`ready` is how many whole batches the queue holds, counted up to 8; `in_delivery` are being sent now."""

    batch_size: int
    ready: int
    in_delivery: int
    delivered: int
    interrupted: int
    below_minimum: int
    why: Why


class GroupView(BaseModel):
    """One group that was accepted; `place` is where it is now, `delivered_at_step` -1 before it was delivered."""

    number: int
    env_id: int | None
    sequences: int
    tokens: int
    score_mean: float
    score_low: float
    score_high: float
    score_spread: float
    received_at: float
    place: str
    delivered_at_step: int


class EnvironmentsView(BaseModel):
    environments: list[EnvironmentView]


class BuffersView(BaseModel):
    buffers: list[BufferView]


class GroupsView(BaseModel):
    """The newest accepted groups, newest first; the server remembers 256."""

    groups: list[GroupView]


class Inspection(BaseModel):
    """Everything but the groups; `taken_at` in Unix seconds, `journal_trouble` empty while the journal is well."""

    taken_at: float
    trainer: TrainerView
    batches: BatchesView
    queue: QueueView
    environments: list[EnvironmentView]
    buffers: list[BufferView]
    warnings: list[RunWarning]
    journal: str | None
    journal_trouble: str


def inspect(run: TrainingRun, journal: str | None, journal_trouble: str) -> Inspection:
    return Inspection(
        taken_at=time.time(),
        trainer=TrainerView(registration=run.registration, started=run.started, current_step=run.step),
        batches=view_batches(run),
        queue=view_queue(run.queue),
        environments=view_environments(run).environments,
        buffers=view_buffers(run).buffers,
        warnings=list(warnings(run)),
        journal=journal,
        journal_trouble=journal_trouble,
    )


def view_environments(run: TrainingRun) -> EnvironmentsView:
    batch_size = run.registration.batch_size if run.registration else 0
    minimums = run.environments.minimums(batch_size)
    total = run.environments.total_claim
    queued: dict[int | None, dict[int, int]] = {}
    for (env_id, size), count in run.queue.counts().items():
        queued.setdefault(env_id, {})[size] = count
    views = [
        _view_environment(run, row, minimums.get(row.env_id, 0), queued.get(row.env_id, {}), total)
        for row in run.environments
    ]
    return EnvironmentsView(environments=views)


def view_buffers(run: TrainingRun) -> BuffersView:
    rows = ((run.environments.get(env_id), buffer) for env_id, buffer in run.buffers.items())
    views = [
        BufferView(env_id=row.env_id, group_size=row.group_size, waiting=view_queue(buffer))
        for row, buffer in rows
        if row is not None and len(buffer)
    ]
    return BuffersView(buffers=views)


def view_batches(run: TrainingRun) -> BatchesView:
    batch_size = run.registration.batch_size if run.registration else 0
    minimums = run.environments.minimums(batch_size)
    if minimums and not run.could_meet(minimums):
        minimums = {}
    return BatchesView(
        batch_size=batch_size,
        ready=run.queue.count_batches(batch_size, minimums, _MOST_READY_BATCHES) if batch_size else 0,
        in_delivery=len(run.in_delivery),
        delivered=run.counters.delivered_batches,
        interrupted=run.counters.interrupted_batches,
        below_minimum=run.counters.batches_below_minimum,
        why=why(run),
    )


def view_groups(run: TrainingRun, limit: int) -> GroupsView:
    return GroupsView(groups=[_view_group(group) for group in islice(reversed(run.recent), limit)])


def _view_environment(
    run: TrainingRun, row: Environment, minimum: int, own: dict[int, int], total: float
) -> EnvironmentView:
    """`own` is how many groups of each size it has in the queue, `total` the claims of all."""
    buffer = run.buffers.get(row.env_id)
    return EnvironmentView(
        env_id=row.env_id,
        wandb_name=row.wandb_name,
        connected=row.connected,
        counts=run.environments.counts(row),
        silent_for=run.environments.silent_for(row),
        control_url=row.control_url,
        group_size=row.group_size,
        weight=run.environments.weight_of(row, total),
        minimum=minimum,
        queued_groups=sum(own.values()),
        queued_sequences=sum(size * count for size, count in own.items()),
        buffered_sequences=buffer.sequences if buffer else 0,
        accepted_groups=row.accepted_groups,
        accepted_sequences=row.accepted_sequences,
        delivered_groups=row.delivered_groups,
        last_group_ago=max(0.0, time.time() - row.last_group_at) if row.last_group_at else None,
    )


def view_queue(queue: GroupQueue) -> QueueView:
    now = time.time()
    lines = []
    held = 0
    for (env_id, size), count in queue.counts().items():
        oldest = queue.oldest_of((env_id, size))
        newest = queue.newest_of((env_id, size))
        held += count * (oldest.stored.stored_bytes + newest.stored.stored_bytes) // 2
        # The clock of the day may have been set back.
        age = max(0.0, now - oldest.received_at)
        lines.append(LineView(env_id=env_id, size=size, groups=count, sequences=size * count, oldest_age=age))
    return QueueView(
        groups=len(queue),
        sequences=queue.sequences,
        oldest_age=max((line.oldest_age for line in lines), default=0.0),
        bytes=held,
        lines=lines,
    )


def _view_group(group: QueuedGroup) -> GroupView:
    return GroupView(
        number=group.number,
        env_id=group.env_id,
        sequences=group.sequences,
        tokens=group.tokens,
        score_mean=group.scores.mean,
        score_low=group.scores.low,
        score_high=group.scores.high,
        score_spread=group.scores.spread,
        received_at=group.received_at,
        place=group.place.value,
        delivered_at_step=group.delivered_at_step,
    )
