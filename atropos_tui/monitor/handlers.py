"""How a part of the model says which events it folds in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from atropos_tui.ledger.events import EventBase

# Each method takes exactly the event type under which it is listed.
Handlers: TypeAlias = Mapping[type[EventBase], Callable[[Any], None]]
