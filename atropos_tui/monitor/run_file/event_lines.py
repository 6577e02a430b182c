"""Events as compressed lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pydantic_core

from atropos_tui.ledger.events import EVENT_ADAPTER, CallFinished, Event, EventBase
from atropos_tui.monitor.run_file.compression import Compressor, decompress


def write_events(events: Sequence[EventBase], compressor: Compressor) -> bytes:
    return compressor.compress(b"\n".join(map(_line, events)))


def read_events(body: bytes, kind: str = "") -> Iterator[Event]:
    """All, or those of one kind. Raises ValueError for a damaged chunk, or for events of a newer version."""
    lines = decompress(body).split(b"\n")
    if kind:
        # A word in the right place is quickly seen; to validate all lines takes a hundred times as long.
        lines = [line for line in lines if b'"kind":"%s"' % kind.encode() in line or b'"kind": "' in line]
    for event in map(EVENT_ADAPTER.validate_json, lines):
        if kind in ("", event.kind):
            yield event


def read_calls(body: bytes, group_id: int) -> Iterator[CallFinished]:
    """The requests of one group that were answered. Raises ValueError as `read_events`."""
    number = b'"group_id":%d,' % group_id
    for line in decompress(body).split(b"\n"):
        if b'"call_finished"' in line and number in line.replace(b": ", b":"):
            event = EVENT_ADAPTER.validate_json(line)
            if isinstance(event, CallFinished) and event.group_id == group_id:
                yield event


def _line(event: EventBase) -> bytes:
    """JSON without line breaks. Infinite and NaN numbers are strings that pydantic reads back."""
    fields = event.model_dump()
    try:
        return pydantic_core.to_json(fields, inf_nan_mode="strings", serialize_unknown=True)
    except ValueError:
        # Lone surrogates, which a log line or an item may have and UTF-8 has no form for.
        return json.dumps(fields, ensure_ascii=False, default=repr).encode(errors="replace")
