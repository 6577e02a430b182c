"""Why there is no batch now, and what an operator should know besides. Reads the run, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from pydantic import BaseModel

from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.packing import can_pack
from atropos_tui.trajectory_api.run import TrainingRun

WhyCode: TypeAlias = Literal[
    "ready",
    "no_trainer",
    "queue_empty",
    "too_few_sequences",
    "sizes_do_not_fit",
    "minimum_not_there",
    "minimum_does_not_fit",
]


class Why(BaseModel):
    """What `/batch` would answer now: `ready`, or why it is null. `text` is one sentence with the numbers."""

    code: WhyCode
    text: str


class RunWarning(BaseModel):
    """`code` is stable and short, `text` one sentence with the numbers."""

    code: str
    text: str


def why(run: TrainingRun) -> Why:
    """The first reason that holds, from the outermost to the innermost."""
    if run.registration is None:
        return Why(code="no_trainer", text="no trainer has registered; POST /register starts the run")
    target = run.registration.batch_size
    queued = run.queue.sequences
    if not queued:
        return Why(code="queue_empty", text=_empty_queue(run, target) + _under_way(run))
    if queued < target:
        text = f"{queued} of the batch's {target} sequences are queued"
        return Why(code="too_few_sequences", text=text + _under_way(run))
    counts = run.queue.counts()
    if not can_pack(counts, target, {}):
        return Why(
            code="sizes_do_not_fit",
            text=f"the queued groups ({_sizes(run)}) do not add up to exactly {target} sequences",
        )
    minimums = run.environments.minimums(target)
    if not minimums or can_pack(counts, target, minimums) or not run.could_meet(minimums):
        return Why(code="ready", text=f"a batch of {target} sequences can be had")
    return _missing_minimum(run, minimums)


def warnings(run: TrainingRun) -> Iterator[RunWarning]:
    """What is not as it should be, though groups may flow."""
    if run.counters.groups_before_trainer and run.registration is None:
        text = f"{run.counters.groups_before_trainer} groups came before a trainer registered; they are kept for it"
        yield RunWarning(code="data_before_trainer", text=text)
    for row in run.environments:
        if row.connected and not run.environments.counts(row):
            silent = f"{_name(row)} has been silent for {run.environments.silent_for(row):.0f} s"
            share = "; batches no longer wait for its minimum share" if row.minimum_share else ""
            yield RunWarning(code="environment_silent", text=silent + share)
    if run.registration is not None:
        minimums = run.environments.minimums(run.registration.batch_size)
        if minimums and not run.could_meet(minimums):
            text = (
                "groups of the environments' sizes cannot meet all minimum shares in one batch; batches go without them"
            )
            yield RunWarning(code="minimums_cannot_be_met", text=text)
        oversized = sum(count for (_, size), count in run.queue.counts().items() if size > run.registration.batch_size)
        if oversized:
            text = f"{oversized} queued groups are larger than the batch of {run.registration.batch_size} sequences"
            yield RunWarning(code="groups_too_large", text=text)
    for env_id, buffer in run.buffers.items():
        owner = run.environments.get(env_id)
        if len(buffer) and owner is not None:
            text = f"{len(buffer)} groups ({buffer.sequences} sequences) of {_name(owner)} "
            text += f"wait for others to make up its group_size {owner.group_size}"
            yield RunWarning(code="groups_buffered", text=text)
    if run.counters.groups_of_strangers:
        text = f"{run.counters.groups_of_strangers} groups named environments that are unknown here; they were queued"
        yield RunWarning(code="unknown_environments", text=text)


def _empty_queue(run: TrainingRun, target: int) -> str:
    buffered = sum(buffer.sequences for buffer in run.buffers.values())
    if buffered:
        return f"the queue is empty; {buffered} sequences wait in buffers for groups that complete them"
    if not len(run.environments):
        return "the queue is empty and no environment has registered"
    return f"the queue is empty; a batch needs {target} sequences"


def _under_way(run: TrainingRun) -> str:
    """Batches that come back if their trainers do not take them."""
    count = len(run.in_delivery)
    return f"; {count} {'batch is' if count == 1 else 'batches are'} being sent" if count else ""


def _missing_minimum(run: TrainingRun, minimums: dict[int, int]) -> Why:
    queued = dict.fromkeys(minimums, 0)
    for (env_id, size), count in run.queue.counts().items():
        if env_id in queued:
            queued[env_id] += size * count
    for env_id, least in minimums.items():
        row = run.environments.get(env_id)
        if row is not None and queued[env_id] < least:
            text = f"{_name(row)} has {queued[env_id]} of the {least} sequences that each batch owes it"
            return Why(code="minimum_not_there", text=text)
    text = f"the queued groups ({_sizes(run)}) cannot meet all minimum shares in exactly one batch; more are needed"
    return Why(code="minimum_does_not_fit", text=text)


def _sizes(run: TrainingRun) -> str:
    """Such as `3 of 4, 1 of 8 sequences`."""
    by_size: dict[int, int] = {}
    for (_, size), count in run.queue.counts().items():
        by_size[size] = by_size.get(size, 0) + count
    return ", ".join(f"{count} of {size}" for size, count in sorted(by_size.items())) + " sequences"


def _name(row: Environment) -> str:
    return f"environment {row.env_id} ({row.wandb_name})"
