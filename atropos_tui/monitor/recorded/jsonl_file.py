"""A JSONL file of scored groups, read line by line into the same model as a live run, and followed while it grows.

Contents stay in the file: of each line its place is remembered, and it is read again when it is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from pathlib import Path

from atropos_tui.ledger import Clock, EventStream
from atropos_tui.ledger.content import GroupContent
from atropos_tui.ledger.events import (
    EventBase,
    GroupDelivered,
    GroupEnqueued,
    GroupScored,
    GroupStarted,
    LogLine,
    RunEnded,
    RunStarted,
)
from atropos_tui.ledger.outcomes import DeliveredAs, RunState
from atropos_tui.monitor.group_store import GroupFilter, KeptGroup
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.packed_content import pack
from atropos_tui.monitor.recorded.scored_groups import read_group
from atropos_tui.monitor.snapshot import GroupPage, RunSnapshot

ITEM_LENGTH = 200


class JsonlFile:
    """Groups are numbered by their lines, from 1; lines that are no groups are told in the log. Safe from any thread.

    The file tells no times: all groups have that of the file's last change. Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._model = Model()
        # Where each line begins.
        self._offsets: dict[int, int] = {}
        self._clock = _FileClock(path.stat().st_mtime, self._offsets)
        self._stream = EventStream(_Sink(self._apply), clock=self._clock)
        self._ended: dict[int, EndedGroup] = {}
        self._end = 0
        self._lines = 0
        self._lock = threading.Lock()
        self._stream.publish(
            RunStarted, run_id=path.name, environment=path.stem, file=str(path), pid=0, group_size=0, total_steps=0,
            max_token_length=0, tokenizer_name="",
        )  # fmt: skip

    def read_on(self) -> bool:
        """Take in the lines that were added; whether there were any. A last line without its end is not one yet."""
        with self._lock, self.path.open("rb") as file:
            file.seek(self._end)
            before = self._end
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._take(line)
            return self._end > before

    def finish(self) -> None:
        """Say that this is all for now."""
        with self._lock:
            why = f"{len(self._ended)} groups of {self.path.name}"
            self._stream.publish(RunEnded, state=RunState.FINISHED, why=why)

    def snapshot(self) -> RunSnapshot:
        with self._lock:
            return self._model.snapshot(self._clock.monotonic(), self._clock.wall())

    def page(self, wanted: GroupFilter, older_than: int | None, limit: int) -> GroupPage:
        """The last lines first."""
        with self._lock:
            ended = list(reversed(self._ended.values()))
        matching = [group.row for group in ended if wanted.matches(group.row) and self._has(group, wanted.search)]
        older = [row for row in matching if older_than is None or row.group_id < older_than]
        rows = tuple(older[:limit])
        return GroupPage(rows, rows[-1].group_id if len(older) > limit else None, len(matching))

    def group_ids(self, wanted: GroupFilter) -> Iterator[int]:
        """The groups of a filter, in the order of the file."""
        page = self.page(wanted, None, len(self._ended) or 1)
        return (row.group_id for row in reversed(page.rows))

    def find(self, group_id: int) -> KeptGroup | None:
        ended = self._ended.get(group_id)
        if ended is None:
            return None
        return KeptGroup(group_id, ended, pack(read_group(self._line(group_id), group_id)))

    def _apply(self, event: EventBase) -> None:
        if (ended := self._model.apply(event)) is not None:
            self._ended[ended.row.group_id] = ended

    def _take(self, line: bytes) -> None:
        self._lines += 1
        self._offsets[self._lines] = self._end
        self._end += len(line)
        if not line.strip():
            return
        try:
            content = read_group(line, self._lines)
        except ValueError as error:
            self._stream.publish(
                LogLine, level="WARNING", logger=self.path.name, text=f"line {self._lines} is no scored group: {error}"
            )
            return
        self._tell(content, len(line))

    def _tell(self, content: GroupContent, size: int) -> None:
        group_id, rollouts = content.group_id, content.rollouts
        publish = self._stream.publish
        publish(GroupStarted, group_id=group_id, item=_item(content), rollouts=len(rollouts), step=0)
        self._model.note_content(group_id)
        publish(
            GroupScored,
            group_id=group_id,
            scores=tuple(rollout.score for rollout in rollouts if rollout.score is not None),
            completion_tokens=tuple(sum(mask != -100 for mask in rollout.masks) for rollout in rollouts),
        )
        publish(GroupEnqueued, group_id=group_id, raw_bytes=size, wire_bytes=size)
        publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.0, attempts=1)

    def _has(self, group: EndedGroup, search: str) -> bool:
        if not search:
            return True
        content = read_group(self._line(group.row.group_id), group.row.group_id)
        text = str([rollout.messages for rollout in content.rollouts]).lower()
        return all(word in text for word in search.lower().replace('"', " ").split())

    def _line(self, group_id: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._offsets[group_id])
            return file.readline()


class _Sink:
    """Contents stay in the file, so only events are taken."""

    def __init__(self, publish: Callable[[EventBase], None]) -> None:
        self.publish = publish

    def keep(self, content: GroupContent) -> None:
        del content


@dataclass(frozen=True, slots=True)
class _FileClock(Clock):
    """The time of the file's last change, and a little more with each line, so that lines have an order."""

    changed_at: float
    lines: Sized

    def monotonic(self) -> float:
        return 1000.0 + len(self.lines) * 1e-6

    def wall(self) -> float:
        return self.changed_at + len(self.lines) * 1e-6


def _item(content: GroupContent) -> str:
    """The beginning of the first message: what the group is about."""
    messages = content.rollouts[0].messages if content.rollouts else ()
    first = next((message.get("content") for message in messages if message.get("role") != "system"), None)
    return first[:ITEM_LENGTH] if isinstance(first, str) else ""
