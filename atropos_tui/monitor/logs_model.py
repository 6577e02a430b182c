"""Log lines, those of the same cause taken together, so that a million of them stay readable.

Lines with a traceback are equal when the same kind of exception left the same line of code; others when they differ in
numbers only. Those that repeat without a traceback what was said with one are equal to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from atropos_tui.ledger.events import LogLine
from atropos_tui.monitor.bounded_text import bounded_tail, one_line
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.instant import Instant
from atropos_tui.monitor.snapshot import LogRow, LogsSection

MAX_LINES = 100
TEXT_LENGTH = 500
TRACEBACK_LENGTH = 6_000
# Of all tracebacks in one section; the newest have them.
TRACEBACKS_LENGTH = 60_000

_ERROR_LEVELS = frozenset({"ERROR", "CRITICAL"})
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_GROUP = re.compile(r"group (\d+)\b")
_FRAME = re.compile(r'^ +File "(.*)", line (\d+)', re.MULTILINE)
_EXCEPTION = re.compile(r"^([\w.]+)(?::|$)", re.MULTILINE)
# Of so many groups that failed the item is remembered; more lines than that are not kept.
_MAX_ITEMS = 2 * MAX_LINES


@dataclass(slots=True)
class _Line:
    level: str
    logger: str
    text: str
    count: int
    first: float
    last: float
    traceback: str
    group_id: int = -1


class LogsModel:
    """Keeps the newest `MAX_LINES` distinct lines of errors, and as many of all other levels."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], _Line] = {}
        self._others: dict[tuple[str, str], _Line] = {}
        self._by_level: Counter[str] = Counter()
        self._dropped = 0
        self._items: dict[int, str] = {}
        # Where lines go that say the same as one with a traceback did.
        self._caused: dict[tuple[str, str], tuple[str, str]] = {}

    def handlers(self) -> Handlers:
        return {LogLine: self._line}

    def count_unseen(self, by_level: Mapping[str, int]) -> None:
        """Lines that came too fast to be looked at."""
        for level, count in by_level.items():
            self._by_level[level.upper()] += count
        self._dropped += sum(by_level.values())

    def failed(self, group_id: int, item: str) -> None:
        """A group failed: a line that tells of it can name its item."""
        self._items[group_id] = item
        if len(self._items) > _MAX_ITEMS:
            del self._items[next(iter(self._items))]

    def section(self, now: Instant) -> LogsSection:
        newest_first = (*reversed(self._errors.values()), *reversed(self._others.values()))
        lines = sorted(newest_first, key=lambda line: line.last, reverse=True)
        rows = []
        budget = TRACEBACKS_LENGTH
        for line in lines:
            budget -= len(line.traceback)
            rows.append(
                LogRow(
                    level=line.level,
                    logger=line.logger,
                    text=line.text,
                    count=line.count,
                    first_at=now.at(line.first),
                    last_at=now.at(line.last),
                    traceback=line.traceback if budget >= 0 else "",
                    group_id=line.group_id,
                    item=self._items.get(line.group_id, ""),
                )
            )
        return LogsSection(
            rows=tuple(rows),
            errors=sum(count for level, count in self._by_level.items() if is_error(level)),
            warnings=self._by_level["WARNING"],
            dropped=self._dropped,
        )

    def _line(self, event: LogLine) -> None:
        level = event.level.upper()
        self._by_level[level] += 1
        lines = self._errors if is_error(level) else self._others
        text = one_line(event.text, TEXT_LENGTH)
        key = self._key(event.logger, _NUMBER.sub("0", text), event.traceback)
        line = lines.pop(key, None)
        if line is None:
            line = _Line(level, one_line(event.logger, 100), text, 0, event.mono, event.mono, "")
            if len(lines) >= MAX_LINES:
                del lines[next(iter(lines))]
                self._dropped += 1
        lines[key] = line
        line.text, line.last = text, event.mono
        line.count += 1
        if event.traceback:
            line.traceback = bounded_tail(event.traceback, TRACEBACK_LENGTH)
        if group := _GROUP.match(text):
            line.group_id = int(group[1])

    def _key(self, logger: str, words: str, traceback: str) -> tuple[str, str]:
        """Of a failure that comes again and again only the first may be logged with its traceback."""
        spoken = (logger, words)
        if not (cause := _cause(traceback)):
            return self._caused.get(spoken, spoken)
        key = (logger, cause)
        if self._caused.pop(spoken, None) is None and len(self._caused) >= MAX_LINES:
            del self._caused[next(iter(self._caused))]
        self._caused[spoken] = key
        return key


def _cause(traceback: str) -> str:
    """The kind of exception at the end of a traceback and where it was raised; empty where neither can be told."""
    frames, exceptions = _FRAME.findall(traceback), _EXCEPTION.findall(traceback)
    return f"{exceptions[-1]} {':'.join(frames[-1])}" if frames and exceptions else ""


def is_error(level: str) -> bool:
    return level.upper() in _ERROR_LEVELS
