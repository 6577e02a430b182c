"""The run between trainer and environments: registration, queue, buffers, batches. Pure; no HTTP, no files.

    no trainer ──register──► registered ──first GET /batch──► started
        ▲                        │ ▲                              │ ▲
        └───────── reset ────────┘ └─ register, same settings: ───┘ └─ register, other settings, or after `num_steps`:
                                      one more trainer process         applied, the step moves to `starting_step`

Data that comes before a trainer is kept for it. A batch is taken, then either delivered or put back; only delivered
ones count as steps.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from atropos_tui.trajectory_api.environments import Environment, Environments
from atropos_tui.trajectory_api.group import Place, QueuedGroup
from atropos_tui.trajectory_api.packing import Kind, can_ever_pack, can_pack
from atropos_tui.trajectory_api.queue import GroupQueue
from atropos_tui.trajectory_api.request_errors import RequestError, UnknownEnvironmentError
from atropos_tui.trajectory_api.stored_json import KeptJson
from atropos_tui.trajectory_api.wire import (
    Accepted,
    EnvNotRegistered,
    EnvRegistered,
    EnvStatus,
    RegisterEnv,
    Registration,
)

WAIT_FOR_TRAINER = "wait for trainer to start"
ENVIRONMENT_TIMEOUT = 60.0
GROUPS_REMEMBERED = 256
# A buffer that holds so many times its environment's group size has found no partners for its groups: the oldest is
# let into the queue, where groups of other sizes and environments may complete a batch with it.
BUFFER_LIMIT = 8


class Record(Protocol):
    """Where the run notes what a restart must know. Accepted groups are noted by whoever accepts them."""

    def registered(self, registration: Registration, step: int) -> None: ...

    def started(self) -> None: ...

    def environment(self, row: Environment) -> None: ...

    def entered(self, groups: Iterable[QueuedGroup]) -> None: ...

    def delivered(self, groups: Iterable[QueuedGroup], step: int) -> None: ...

    def reset(self) -> None: ...


@dataclass(slots=True)
class Counters:
    """Totals since the process started."""

    accepted_groups: int = 0
    accepted_sequences: int = 0
    repeated_groups: int = 0
    refused_requests: dict[int, int] = field(default_factory=dict)
    delivered_batches: int = 0
    delivered_groups: int = 0
    interrupted_batches: int = 0
    groups_before_trainer: int = 0
    groups_of_strangers: int = 0
    batches_below_minimum: int = 0
    released_from_buffers: int = 0


class TrainingRun:
    """All state of the server. Not thread-safe: it belongs to the event loop."""

    def __init__(
        self,
        record: Record | None = None,
        clock: Callable[[], float] = time.monotonic,
        environment_timeout: float = ENVIRONMENT_TIMEOUT,
    ) -> None:
        self._record = record
        self._clock = clock
        self.registration: Registration | None = None
        self.started = False
        self.step = 0
        self.resets = 0
        self.environments = Environments(clock, environment_timeout)
        self.queue = GroupQueue()
        self.buffers: dict[int, GroupQueue] = {}
        self.in_delivery: list[list[QueuedGroup]] = []
        self.latest: KeptJson | None = None
        self.recent: deque[QueuedGroup] = deque(maxlen=GROUPS_REMEMBERED)
        self.counters = Counters()
        self._next_number = 1
        self._turned_away: dict[int, float] = {}

    @property
    def has_trainer(self) -> bool:
        return self.registration is not None

    def register(self, registration: Registration) -> None:
        """Apply a trainer's settings. Raises RequestError (409) when the environments here cannot fill a batch."""
        if registration == self.registration and not self._has_all_steps(registration):
            return
        sizes = frozenset(row.group_size for row in self.environments.counting())
        if sizes and not can_ever_pack(sizes, registration.batch_size):
            raise RequestError(
                409,
                f"batch_size {registration.batch_size} can never be met: the groups here have {_in_words(sizes)}",
                "register with a sum of these sizes, or change the environments' group_size",
            )
        self.registration = registration
        self.step = registration.starting_step
        if self._record:
            self._record.registered(registration, self.step)

    def register_environment(self, request: RegisterEnv) -> EnvRegistered | EnvNotRegistered:
        if self.registration is None or not self.started:
            return EnvNotRegistered(status=WAIT_FOR_TRAINER)
        why_not = self._misfit(request.group_size, self.registration.batch_size)
        if why_not:
            self._turned_away[request.group_size] = self._clock()
            return EnvNotRegistered(status=why_not)
        row = self._row_for(request)
        if self._record:
            self._record.environment(row)
        self._buffer_again(row)
        return EnvRegistered(
            env_id=row.env_id,
            wandb_name=row.wandb_name,
            checkpoint_dir=self.registration.checkpoint_dir,
            starting_step=self.step,
            checkpoint_interval=self.registration.save_checkpoint_interval,
            num_steps=self.registration.num_steps,
        )

    def disconnect(self, env_id: int) -> None:
        """Raises UnknownEnvironmentError."""
        row = self.known(env_id)
        row.connected = False
        if self._record:
            self._record.environment(row)

    def known(self, env_id: int) -> Environment:
        """The environment of this id. Raises UnknownEnvironmentError."""
        row = self.environments.get(env_id)
        if row is None:
            raise UnknownEnvironmentError(env_id)
        return row

    def reset(self) -> None:
        """Forget everything but the latest group."""
        self.resets += 1
        self.registration = None
        self.started = False
        self.step = 0
        self.environments.clear()
        for group in chain(self.queue, *self.buffers.values(), *self.in_delivery):
            group.leave(Place.DROPPED)
        self.queue = GroupQueue()
        self.buffers = {}
        self.in_delivery = []
        self._turned_away = {}
        if self._record:
            self._record.reset()

    def next_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def check(self, env_id: int | None, sequences: int, *, sender_registers: bool) -> None:
        """Raises RequestError for a group that no batch can hold (422), or whose environment is unknown (404).

        The latter only if the sender knows to register again; groups of others are taken as nobody's, as upstream
        takes them, for they would be lost.
        """
        if sender_registers and env_id is not None:
            self.known(env_id)
        if self.registration is not None and sequences > self.registration.batch_size:
            raise RequestError(
                422,
                f"a group of {sequences} sequences is larger than the batch_size {self.registration.batch_size}",
                "use a smaller group_size or a larger batch_size",
            )

    def will_buffer(self, group: QueuedGroup) -> bool:
        """Whether the group's size is below its environment's, so that it must wait for others of it."""
        row = self.environments.get(group.env_id)
        return row is not None and group.sequences < row.group_size

    def admit(self, group: QueuedGroup) -> Accepted:
        """Put an accepted group into the queue or the buffer of its environment."""
        self.counters.accepted_groups += 1
        self.counters.accepted_sequences += group.sequences
        self.counters.groups_before_trainer += self.registration is None
        self.recent.append(group)
        row = self.environments.get(group.env_id)
        if row is None:
            self.counters.groups_of_strangers += group.env_id is not None
        else:
            self.environments.heard_of(row)
            row.accepted_groups += 1
            row.accepted_sequences += group.sequences
            row.last_group_at = group.received_at
            if group.sequences < row.group_size:
                return Accepted(status="buffered", buffer_size=self._buffer(group, row))
        self._enter(group)
        return Accepted(status="received")

    def take_batch(self) -> list[QueuedGroup] | None:
        """The next batch, oldest groups first, out of the queue; None when none can be made. Starts the run.

        Whoever takes a batch calls `delivered` or `put_back` with it.
        """
        if self.registration is None:
            return None
        if not self.started:
            self.started = True
            if self._record:
                self._record.started()
        target = self.registration.batch_size
        minimums = self.environments.minimums(target)
        batch = self.queue.take(target, minimums)
        if batch is None and minimums and not self.could_meet(minimums):
            batch = self.queue.take(target, {})
            self.counters.batches_below_minimum += batch is not None
        if batch is not None:
            self.in_delivery.append(batch)
            for group in batch:
                group.place = Place.IN_DELIVERY
        return batch

    def delivered(self, batch: list[QueuedGroup]) -> None:
        if not self._ends_delivery(batch):
            return
        self.step += 1
        self.counters.delivered_batches += 1
        self.counters.delivered_groups += len(batch)
        for group in batch:
            group.leave(Place.DELIVERED, self.step)
            row = self.environments.get(group.env_id)
            if row is not None:
                row.delivered_groups += 1
        if self._record:
            self._record.delivered(batch, self.step)

    def put_back(self, batch: list[QueuedGroup]) -> None:
        if not self._ends_delivery(batch):
            return
        self.counters.interrupted_batches += 1
        for group in batch:
            group.place = Place.QUEUED
        self.queue.put_back(batch)

    def could_meet(self, minimums: dict[int, int]) -> bool:
        """Whether the environments that count could, in time, send groups that meet the minimums in one batch."""
        target = self.registration.batch_size if self.registration else 0
        supply: dict[Kind, int] = self.queue.counts()
        for row in self.environments.counting():
            sizes = {row.group_size} | {size for sender, size in supply if sender == row.env_id}
            supply |= {(row.env_id, size): target // size for size in sizes if size <= target}
        return can_pack(supply, target, minimums)

    def environment_status(self, env_id: int) -> EnvStatus:
        """Upstream's arithmetic, in which sizes are those of the queue now. Raises UnknownEnvironmentError."""
        row = self.known(env_id)
        self.environments.heard_of(row)
        sequences: dict[int | None, int] = {}
        own_size = row.group_size
        for (sender, size), count in self.queue.counts().items():
            sequences[sender] = sequences.get(sender, 0) + size * count
            if sender == env_id:
                own_size = max(own_size, size)
        own = sequences.pop(env_id, 0)
        largest = max(1, self.queue.largest_size)
        return EnvStatus(
            current_step=self.step,
            queue_size=(own + self._available(sequences, largest)) // own_size,
            unallocated_fraction=self.environments.unallocated_fraction,
            self_queue_size=own // own_size,
            max_group_size=largest,
            env_weight=self.environments.weight_of(row),
        )

    def _available(self, sequences: dict[int | None, int], largest: int) -> int:
        """What other environments have queued beyond their minimums, counted in packs of the largest group."""
        if largest == 1:
            return 0
        batch_size = self.registration.batch_size if self.registration else 0
        due = {row.env_id: int(batch_size * (row.minimum_share or 0.0)) for row in self.environments.counting()}
        return sum(
            max(0, -(-count // largest) * largest - (due.get(sender, 0) if sender is not None else 0))
            for sender, count in sequences.items()
        )

    def restore(
        self,
        registration: Registration | None,
        started: bool,
        step: int,
        last_number: int,
        environments: list[Environment],
        groups: Iterable[tuple[QueuedGroup, bool]],
    ) -> None:
        """Go on where an earlier process ended. `groups` come oldest first, with whether each was in the queue."""
        self.registration, self.started, self.step = registration, started, step
        self._next_number = last_number + 1
        self.environments.restore(environments)
        for group, queued in groups:
            if queued or group.env_id is None:
                self.queue.put(group)
            else:
                group.place = Place.BUFFERED
                self.buffers.setdefault(group.env_id, GroupQueue()).put(group)
            self.recent.append(group)
        for row in environments:
            self._buffer_again(row)

    def _has_all_steps(self, registration: Registration) -> bool:
        """Whether the trainer got all batches that it wanted, so that one that registers now begins anew."""
        return registration.starting_step < registration.num_steps <= self.step

    def _row_for(self, request: RegisterEnv) -> Environment:
        return self.environments.register(request)

    def _ends_delivery(self, batch: list[QueuedGroup]) -> bool:
        """Whether the batch was still under way; a reset meanwhile took it back."""
        before = len(self.in_delivery)
        self.in_delivery = [other for other in self.in_delivery if other is not batch]
        return len(self.in_delivery) < before

    def _enter(self, *groups: QueuedGroup) -> None:
        for group in groups:
            group.place = Place.QUEUED
            self.queue.put(group)
            self.latest = group.stored

    def _buffer(self, group: QueuedGroup, row: Environment) -> int:
        """Put a group with its environment's others; the sequences that then wait there.

        As soon as some of them add up to the environment's group size, they enter the queue together.
        """
        group.place = Place.BUFFERED
        buffer = self.buffers.setdefault(row.env_id, GroupQueue())
        buffer.put(group)
        ready = buffer.take(row.group_size, {})
        if ready is None and buffer.oldest is not None and buffer.sequences >= BUFFER_LIMIT * row.group_size:
            self.counters.released_from_buffers += 1
            ready = buffer.take(buffer.oldest.sequences, {})
        if ready:
            self._enter(*ready)
            if self._record:
                self._record.entered(ready)
        return buffer.sequences

    def _buffer_again(self, row: Environment) -> None:
        """Sort an environment's buffered groups anew, as it may have registered with another size."""
        for group in self.buffers.pop(row.env_id, ()):
            if group.sequences < row.group_size:
                self._buffer(group, row)
            else:
                self._enter(group)
                if self._record:
                    self._record.entered([group])

    def _misfit(self, group_size: int, batch_size: int) -> str:
        """Why an environment with this group size can never be part of a batch, or empty."""
        if group_size > batch_size:
            return f"group_size {group_size} is larger than the trainer's batch_size {batch_size}; use a smaller one"
        recently = self._clock() - ENVIRONMENT_TIMEOUT
        sizes = {row.group_size for row in self.environments.counting()} | {group_size}
        sizes |= {size for size, at in self._turned_away.items() if at > recently}
        if can_ever_pack(frozenset(sizes), batch_size - group_size):
            return ""
        return (
            f"group_size {group_size} cannot make up the trainer's batch_size {batch_size}; "
            f"use one that divides it, or register the trainer with a multiple of {group_size}"
        )


def _in_words(sizes: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(sizes)))
