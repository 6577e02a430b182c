"""A JSONL file of scored groups, read line by line into the same model as a live run, and followed while it grows.

Contents stay in the file: of each line its place is remembered, and it is read again when it is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from atropos_tui.ledger.content import GroupContent, Rollout
from atropos_tui.monitor.group_detail import GroupPage
from atropos_tui.monitor.group_filter import sorted_rows
from atropos_tui.monitor.group_store import GroupFilter, KeptGroup, sorted_page
from atropos_tui.monitor.open_groups import EndedGroup
from atropos_tui.monitor.packed_content import pack
from atropos_tui.monitor.recorded.jsonl_lines import JsonlLine, ToldLines
from atropos_tui.monitor.recorded.scored_groups import read_group
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.monitor.token_looks import REMEMBERED_ROLLOUTS

ITEM_LENGTH = 200


class JsonlFile:
    """Groups are numbered by their lines, from 1; lines that are no groups are told in the log. Safe from any thread.

    Raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._changed_at = path.stat().st_mtime
        self._lines: list[JsonlLine] = []
        self._ended: dict[int, EndedGroup] = {}
        self._end = 0
        self._newest = self._told_nothing()
        # As far as a past moment was asked for, so that the next line costs one line.
        self._past = self._told_nothing()
        self._lock = threading.Lock()

    @property
    def lines(self) -> int:
        return len(self._lines)

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
            self._newest.finish()

    def snapshot(self, line: int | None = None) -> RunSnapshot:
        """After all lines that were read, or as if the file ended with this line."""
        with self._lock:
            if line is None:
                return self._newest.snapshot()
            if self._past.told > line:
                self._past = self._told_nothing()
            for further in self._lines[self._past.told : line]:
                # To read all lines once more takes long, and only the newest rollouts that are looked at count.
                near = further.rollouts and further.number > line - REMEMBERED_ROLLOUTS
                self._past.tell(further, read_group(self._line(further.number), further.number) if near else None)
            return self._past.snapshot()

    def page(self, wanted: GroupFilter, older_than: int | None, limit: int, not_after: int | None = None) -> GroupPage:
        """The last lines first, none after the line `not_after`."""
        with self._lock:
            ended = list(reversed(self._ended.values()))
        shown = [group for group in ended if not_after is None or group.row.group_id <= not_after]
        matching = [
            group.row
            for group in shown
            if self._has(group, wanted.search) and wanted.matches(group.row, partial(self._says, group.row.group_id))
        ]
        if not wanted.by_time:
            return sorted_page(sorted_rows(matching, wanted.order), older_than, limit)
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

    def _told_nothing(self) -> ToldLines:
        return ToldLines(self.path.name, str(self.path), self._changed_at)

    def _take(self, text: bytes) -> None:
        line, content = _read(text, len(self._lines) + 1, self._end)
        self._lines.append(line)
        self._end += len(text)
        if (ended := self._newest.tell(line, content)) is not None:
            self._ended[line.number] = ended

    def _has(self, group: EndedGroup, search: str) -> bool:
        if not search:
            return True
        content = read_group(self._line(group.row.group_id), group.row.group_id)
        text = str([rollout.messages for rollout in content.rollouts]).lower()
        return all(word in text for word in search.lower().replace('"', " ").split())

    def _says(self, number: int, word: str) -> bool:
        kept = self.find(number)
        return kept is not None and kept.says(word)

    def _line(self, number: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._lines[number - 1].offset)
            return file.readline()


def _read(text: bytes, number: int, offset: int) -> tuple[JsonlLine, GroupContent | None]:
    """What is remembered of a line, and all of the group on it if there is one."""
    if not text.strip():
        return JsonlLine(number, offset, len(text)), None
    try:
        content = read_group(text, number)
    except ValueError as error:
        return JsonlLine(number, offset, len(text), fault=f"no scored group: {error}"), None
    rollouts = content.rollouts
    line = JsonlLine(
        number,
        offset,
        len(text),
        item=_item(rollouts),
        rollouts=len(rollouts),
        scores=tuple(rollout.score for rollout in rollouts if rollout.score is not None),
        completion_tokens=tuple(sum(mask != -100 for mask in rollout.masks) for rollout in rollouts),
        finishes=tuple(dict.fromkeys(rollout.finish_reason for rollout in rollouts)),
        parts=tuple((rollout.score, rollout.parts) for rollout in rollouts if rollout.parts),
    )
    return line, content


def _item(rollouts: Sequence[Rollout]) -> str:
    """The beginning of the first message: what the group is about."""
    messages = rollouts[0].messages if rollouts else ()
    first = next((message.get("content") for message in messages if message.get("role") != "system"), None)
    return first[:ITEM_LENGTH] if isinstance(first, str) else ""
