"""Events as compressed lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pydantic_core

from atropos_tui.ledger.events import EVENT_ADAPTER, Event, EventBase
from atropos_tui.monitor.run_file.compression import Compressor, decompress


def write_events(events: Sequence[EventBase], compressor: Compressor) -> bytes:
    return compressor.compress(b"\n".join(map(_line, events)))


def read_events(body: bytes) -> Iterator[Event]:
    """Raises ValueError for a damaged chunk, or for events of a newer version."""
    for line in decompress(body).split(b"\n"):
        yield EVENT_ADAPTER.validate_json(line)


def _line(event: EventBase) -> bytes:
    """JSON without line breaks. Infinite and NaN numbers are strings that pydantic reads back."""
    fields = event.model_dump()
    try:
        return pydantic_core.to_json(fields, inf_nan_mode="strings", serialize_unknown=True)
    except ValueError:
        # Lone surrogates, which a log line or an item may have and UTF-8 has no form for.
        return json.dumps(fields, ensure_ascii=False, default=repr).encode(errors="replace")
