"""Upstream's own behaviour (atroposlib 0.4.0), faults included, for comparisons: `--strict-upstream`.

What differs from `TrainingRun`:
- only the first registration counts, and none does once data came before it;
- `/batch` forms every batch that can be had at once, adds that many steps, and hands out the newest first; what a
  client does not receive is lost, and so is a batch with a number that JSON does not have (500);
- batches are made of packs: groups of one size that add up to the largest group's size;
- groups of another size than their environment's wait in its buffer, larger ones for ever; nothing is checked;
- an environment never ceases to count unless it disconnects; one with a minimum share and no groups stops all batches;
- `/status-env` raises an environment's group size for good, and fails (500) for an unknown one or when no weight is
  positive.
Which of several fitting subsets leaves a buffer may differ from upstream.
"""

from __future__ import annotations

import math

from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.group import Place, QueuedGroup
from atropos_tui.trajectory_api.queue import GroupQueue
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.strict.packing import batch_of_packs, batch_with_minimums
from atropos_tui.trajectory_api.wire import Accepted, EnvStatus, RegisterEnv, Registration


class UpstreamRun(TrainingRun):
    """The run as upstream has it. Its queue is renumbered as groups enter, so that their numbers give its order."""

    def __init__(self) -> None:
        super().__init__(environment_timeout=math.inf)
        self._has_queue = False
        self._was_registered = False
        self._formed: list[list[QueuedGroup]] = []

    @property
    def has_trainer(self) -> bool:
        return self._was_registered

    def register(self, registration: Registration) -> None:
        if not self._has_queue:
            self._has_queue = self._was_registered = True
            self.registration = registration
            self.step = registration.starting_step

    def reset(self) -> None:
        super().reset()
        self._has_queue = False
        self._formed = []

    def check(self, env_id: int | None, sequences: int, *, sender_registers: bool) -> None:
        """Everything is taken."""

    def admit(self, group: QueuedGroup) -> Accepted:
        self._has_queue = True
        row = self.environments.get(group.env_id)
        if row is None or group.sequences == row.group_size:
            self._enter(group)
            return Accepted(status="received")
        group.place = Place.BUFFERED
        buffer = self.buffers.setdefault(row.env_id, GroupQueue())
        buffer.put(group)
        self._enter(*(buffer.take(row.group_size, {}) or ()))
        return Accepted(status="buffered", buffer_size=buffer.sequences)

    def take_batch(self) -> list[QueuedGroup] | None:
        if not self._has_queue:
            raise _broken()
        self.started = True
        if not self._formed:
            while (batch := self._form()) is not None:
                self._formed.append(batch)
            self.step += len(self._formed)
        if not self._formed:
            return None
        batch = self._formed.pop()
        if any(group.stored.size == 0 for group in batch):
            raise _broken()
        return batch

    def delivered(self, batch: list[QueuedGroup]) -> None:
        for group in batch:
            group.leave(Place.DELIVERED, self.step)

    def put_back(self, batch: list[QueuedGroup]) -> None:
        for group in batch:
            group.leave(Place.DROPPED)

    def environment_status(self, env_id: int) -> EnvStatus:
        row = self.environments.get(env_id)
        if row is None or not any(other.claim for other in self.environments.counting()):
            raise _broken()
        status = super().environment_status(env_id)
        row.group_size = max([row.group_size, *(size for sender, size in self.queue.counts() if sender == env_id)])
        return status

    def _enter(self, *groups: QueuedGroup) -> None:
        for group in groups:
            group.number = self.next_number()
        super()._enter(*groups)

    def _row_for(self, request: RegisterEnv) -> Environment:
        return self.environments.add(request)

    def _misfit(self, group_size: int, batch_size: int) -> str:
        return ""

    def _form(self) -> list[QueuedGroup] | None:
        """One batch out of the queue, or None."""
        line = list(self.queue)
        target = self.registration.batch_size if self.registration else -1
        minimums = {
            row.env_id: row.minimum_share for row in self.environments.counting() if row.minimum_share is not None
        }
        batch = batch_with_minimums(line, target, minimums) if minimums else batch_of_packs(line, target)
        if batch is None:
            return None
        gone = set(map(id, batch))
        self.queue = GroupQueue()
        for group in line:
            if id(group) not in gone:
                self.queue.put(group)
        return batch


def _broken() -> RequestError:
    return RequestError(500, "Internal Server Error")
