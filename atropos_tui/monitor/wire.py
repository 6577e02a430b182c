"""Snapshots as JSON between worker and screen: only the sections that changed, put together again on the other side.

One object is `{"seq", "taken_at", "versions": {name: n}, "sections": {name: {…}}}`; `sections` holds those whose
version differs from what the client said it knows. Infinite and NaN numbers travel as the strings pydantic reads back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_type_hints

from atropos_tui.monitor.decoding import decoded
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.snapshot import SECTIONS, ConfigRow, RunSnapshot

_SECTION_TYPES = get_type_hints(RunSnapshot)


def to_json(value: object) -> bytes:
    """A dataclass (or anything plain) as JSON."""
    import pydantic_core  # the worker's only: a screen must not wait for it to load

    return pydantic_core.to_json(value, inf_nan_mode="strings")


def read_page(body: bytes) -> GroupPage:
    """Raises ValueError when the body is no page."""
    return decoded(GroupPage, json.loads(body))


def read_detail(body: bytes) -> GroupDetail:
    """Raises ValueError when the body is no group."""
    return decoded(GroupDetail, json.loads(body))


def read_config(body: bytes) -> tuple[ConfigRow, ...]:
    """Raises ValueError when the body is no configuration."""
    return tuple(decoded(ConfigRow, row) for row in json.loads(body))


def query_params(query: GroupQuery) -> dict[str, str]:
    """The parameters of a request for groups; those that say nothing are left out."""
    params = {"filter": query.filter, "order": "" if query.by_time else query.order, "but": _numbers(query.but)}
    if query.only is not None:
        params["only"] = _numbers(query.only) or "none"
    return {name: value for name, value in params.items() if value}


def read_query(params: Mapping[str, str]) -> GroupQuery:
    """The contrary. Raises ValueError for what are no numbers."""

    def numbers(name: str) -> tuple[int, ...]:
        return tuple(map(int, filter(None, params.get(name, "").replace("none", "").split(","))))

    return GroupQuery(
        filter=params.get("filter", ""),
        order=params.get("order") or ALL_GROUPS.order,
        only=numbers("only") if params.get("only") else None,
        but=numbers("but"),
    )


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def parse_known(text: str) -> dict[str, int]:
    """`queue:12,scores:4` as a mapping. Raises ValueError for anything else."""
    known: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, version = part.partition(":")
        if name not in SECTIONS:
            raise ValueError(f"there is no section {name!r}")
        known[name] = int(version)
    return known


class SnapshotEncoder:
    """Encodes what a client doesn't know yet; a section once a version, however many clients ask."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[int, bytes]] = {}

    def encode(self, snapshot: RunSnapshot, known: Mapping[str, int]) -> bytes | None:
        """One JSON object without line breaks; None when the client knows every section in this version."""
        changed = [name for name in SECTIONS if known.get(name) != snapshot.versions[name]]
        if not changed:
            return None
        head = to_json({"seq": snapshot.seq, "taken_at": snapshot.taken_at, "versions": snapshot.versions})
        sections = b",".join(b'"%s":%s' % (name.encode(), self._section(snapshot, name)) for name in changed)
        return head[:-1] + b',"sections":{' + sections + b"}}"

    def _section(self, snapshot: RunSnapshot, name: str) -> bytes:
        version = snapshot.versions[name]
        cached = self._encoded.get(name)
        if cached is None or cached[0] != version:
            cached = self._encoded[name] = (version, to_json(getattr(snapshot, name)))
        return cached[1]


class SnapshotMerger:
    """Puts the changes of one worker together to whole snapshots."""

    def __init__(self) -> None:
        self.snapshot = RunSnapshot()

    def merge(self, body: bytes) -> RunSnapshot:
        """The snapshot after these changes. Raises ValueError when the body isn't as described above."""
        change = json.loads(body)
        try:
            sections = {
                name: decoded(_SECTION_TYPES[name], section)
                for name, section in change["sections"].items()
                if name in _SECTION_TYPES
            }
            self.snapshot = replace(
                self.snapshot,
                seq=int(change["seq"]),
                taken_at=float(change["taken_at"]),
                versions={name: int(version) for name, version in change["versions"].items()},
                **sections,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a snapshot: {error!r}") from error
        return self.snapshot
