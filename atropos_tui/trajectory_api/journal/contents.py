"""What the records of a journal say together: the run, its environments, the groups that wait, the keys to remember."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from atropos_tui.trajectory_api.environments import Environment
from atropos_tui.trajectory_api.group import Place, QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.journal.filed_json import FiledJson, packed
from atropos_tui.trajectory_api.journal.held_file import HeldFile
from atropos_tui.trajectory_api.journal.records import Buffer, Record, framed
from atropos_tui.trajectory_api.wire import Registration

# So many of the newest idempotency keys are remembered, here and in memory.
KEYS_REMEMBERED = 100_000


def group_record(group: QueuedGroup) -> list[Buffer]:
    """An accepted group; its text as `packed` makes it."""
    about = {
        "kind": "group",
        "number": group.number,
        "env_id": group.env_id,
        "sequences": group.sequences,
        "tokens": group.tokens,
        "scores": (group.scores.mean, group.scores.low, group.scores.high, group.scores.spread),
        "received_at": group.received_at,
        "key": group.key,
        "queued": group.place is Place.QUEUED,
    }
    form, text = packed(group.stored)
    return framed(about | form, text)


def entered_record(numbers: list[int]) -> list[Buffer]:
    """Groups that left their buffers for the queue."""
    return framed({"kind": "entered", "numbers": numbers})


def delivered_record(numbers: list[int], step: int) -> list[Buffer]:
    return framed({"kind": "delivered", "numbers": numbers, "step": step})


def registered_record(registration: Registration | None, step: int) -> list[Buffer]:
    told = None if registration is None else registration.model_dump(mode="json")
    return framed({"kind": "registered", "registration": told, "step": step})


def started_record() -> list[Buffer]:
    return framed({"kind": "started"})


def environment_record(row: Environment) -> list[Buffer]:
    return framed({"kind": "environment", "row": asdict(row)})


def latest_record(latest: Record, text: bytes) -> list[Buffer]:
    """The group that entered the queue last, after it has left."""
    return framed(latest.about | {"kind": "latest"}, [text])


def reset_record() -> list[Buffer]:
    return framed({"kind": "reset"})


@dataclass(slots=True)
class Contents:
    """The fold of a journal's records. `last_number` is that of the newest group, delivered or not.

    `groups` are those that wait, by number; `queued` the numbers of those in the queue (others are in buffers); `keys`
    are the numbers of the groups that came with each idempotency key; `latest` is the group that entered the queue
    last, though it may have left.
    """

    registration: dict[str, Any] | None = None
    started: bool = False
    step: int = 0
    last_number: int = 0
    environments: dict[int, dict[str, Any]] = field(default_factory=dict)
    groups: dict[int, Record] = field(default_factory=dict)
    queued: set[int] = field(default_factory=set)
    keys: dict[str, int] = field(default_factory=dict)
    latest: Record | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> Contents:
        contents = cls()
        for record in records:
            contents = contents._with(record)
        return contents

    def waiting_groups(self, file: HeldFile, in_memory: int) -> Iterator[tuple[QueuedGroup, bool]]:
        """The groups that were not delivered, oldest first, and whether each was in the queue (else in a buffer).

        The texts of the first ones, which take so many bytes in the file, come into memory.
        """
        for number in sorted(self.groups):
            about = self.groups[number].about
            filed = FiledJson.of_record(self.groups[number], file)
            in_memory -= filed.end - filed.start
            yield (
                QueuedGroup(
                    number=number,
                    env_id=about["env_id"],
                    sequences=about["sequences"],
                    tokens=about["tokens"],
                    scores=ScoreSummary(*about["scores"]),
                    received_at=about["received_at"],
                    stored=filed.deflate() if in_memory >= 0 else filed,
                    key=about["key"],
                ),
                number in self.queued,
            )

    def remembered_keys(self) -> list[str]:
        """The idempotency keys to remember, oldest first."""
        return sorted(self.keys, key=self.keys.__getitem__)[-KEYS_REMEMBERED:]

    def state_records(self) -> Iterator[list[Buffer]]:
        """Records that say all of this but the groups, in the fewest words."""
        yield framed({"kind": "registered", "registration": self.registration, "step": self.step})
        if self.started:
            yield started_record()
        for row in self.environments.values():
            yield framed({"kind": "environment", "row": row})
        keys = {key: self.keys[key] for key in self.remembered_keys()}
        yield framed({"kind": "keys", "keys": keys, "last_number": self.last_number})

    def _with(self, record: Record) -> Contents:
        about = record.about
        match about["kind"]:
            case "group":
                number = about["number"]
                self.groups[number] = record
                self.last_number = max(self.last_number, number)
                if about["queued"]:
                    self.queued.add(number)
                    self.latest = record
                if about["key"]:
                    self.keys[about["key"]] = number
            case "entered":
                self.queued.update(about["numbers"])
                self.latest = self.groups.get(about["numbers"][-1], self.latest) if about["numbers"] else self.latest
            case "latest":
                self.latest = record
            case "delivered":
                for number in about["numbers"]:
                    self.groups.pop(number, None)
                    self.queued.discard(number)
                self.step = about["step"]
            case "registered":
                self.registration, self.step = about["registration"], about["step"]
            case "started":
                self.started = True
            case "environment":
                self.environments[about["row"]["env_id"]] = about["row"]
            case "keys":
                self.keys.update(about["keys"])
                self.last_number = max(self.last_number, about["last_number"])
            case "reset":
                return Contents(latest=self.latest)
        return self
