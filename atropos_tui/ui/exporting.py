"""Taking groups away from the screen: as text, or into files."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import IO

import orjson

from atropos_tui.errors import UsageError
from atropos_tui.html_page import generate_html
from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.monitor.recorded.scored_groups import write_group as scored_group
from atropos_tui.ui.run_source import RunSource

_PAGE = 200


class ExportFormat(StrEnum):
    """One group a line, as atroposlib writes them, or one page that needs nothing else."""

    JSONL = "jsonl"
    HTML = "html"


def rollout_as_text(rollout: RolloutDetail) -> str:
    """The messages as plain text; the decoded tokens where there are none."""
    if not rollout.messages:
        return "".join(rollout.pieces)
    return "\n\n".join(f"{message.get('role', '?')}:\n{message.get('content') or ''}" for message in rollout.messages)


def write_group(detail: GroupDetail, directory: Path) -> Path:
    """Write the whole group as JSON into a new file. Raises UsageError when it cannot be written."""
    path = new_file(directory, f"group-{detail.row.group_id}", "json")
    try:
        path.write_text(json.dumps(asdict(detail), ensure_ascii=True, indent=1, default=str), encoding="utf-8")
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


class GroupsExport:
    """Writes the groups of a query into a new file. What is written so far is whole, whenever it is cancelled."""

    def __init__(self, source: RunSource, query: GroupQuery, form: ExportFormat, directory: Path, name: str) -> None:
        self.path = new_file(directory, f"{_as_file_name(name)}-groups", form)
        self.written = 0
        self.without_content = 0
        self._source = source
        self._query = query
        self._form = form

    async def write(self, on_progress: Callable[[int, int], None]) -> None:
        """`on_progress` gets how many were written, and of how many. Raises UsageError when it cannot be written."""
        try:
            with tempfile.TemporaryDirectory(prefix="atropos-tui-") as scratch:
                lines = self.path if self._form is ExportFormat.JSONL else Path(scratch) / "groups.jsonl"
                try:
                    with await asyncio.to_thread(lines.open, "xb") as file:
                        await self._write_lines(file, on_progress)
                finally:
                    # Cancelled or not: the page of what there is.
                    if self._form is ExportFormat.HTML and lines.exists():
                        await asyncio.to_thread(generate_html, lines, self.path)
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    async def _write_lines(self, file: IO[bytes], on_progress: Callable[[int, int], None]) -> None:
        async for detail, many in self._groups():
            if detail is None:
                self.without_content += 1
                continue
            line = await asyncio.to_thread(_line, detail)
            await asyncio.to_thread(file.write, line)
            self.written += 1
            on_progress(self.written, many)

    async def _groups(self) -> AsyncIterator[tuple[GroupDetail | None, int]]:
        """Each group in full, None for one without content, and how many there are."""
        older_than: int | None = None
        while True:
            page = await self._source.groups(older_than=older_than, limit=_PAGE, query=self._query)
            for row in page.rows:
                detail = await self._source.group(row.group_id) if row.has_content else None
                yield (detail if detail is not None and detail.rollouts else None), page.total
            if page.older_than is None:
                return
            older_than = page.older_than


def new_file(directory: Path, name: str, suffix: str) -> Path:
    """A path in the directory where there is no file yet."""
    path = directory / f"{name}.{suffix}"
    number = 1
    while path.exists():
        number += 1
        path = directory / f"{name}-{number}.{suffix}"
    return path


def _line(detail: GroupDetail) -> bytes:
    group = scored_group(detail.rollouts)
    try:
        return orjson.dumps(group, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:
        # Lone surrogates in the text of a model, which UTF-8 has no form for.
        return json.dumps(group, default=str).encode() + b"\n"


def _as_file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII).strip("._") or "run"


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror}", "start in a directory that can be written to")
