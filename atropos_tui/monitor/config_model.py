"""The merged configuration of a run: what it began with, and what the trainer has set since."""

from __future__ import annotations

import json
from collections.abc import Iterator

from atropos_tui.ledger.events import RunConfigured, RunStarted
from atropos_tui.monitor.handlers import Handlers
from atropos_tui.monitor.snapshot import ConfigRow

BY_TRAINER = "the trainer"


class ConfigModel:
    """Apart from the snapshot, for it hardly ever changes and is looked at now and then."""

    def __init__(self) -> None:
        self._started: RunStarted | None = None
        self._configured: RunConfigured | None = None

    def handlers(self) -> Handlers:
        return {RunStarted: self._run_started, RunConfigured: self._run_configured}

    def rows(self) -> tuple[ConfigRow, ...]:
        """In the order of the config's fields; empty before the run has begun."""
        if self._started is None:
            return ()
        rows = _given(self._started)
        if self._configured is None:
            return tuple(rows)
        told = {
            "env.batch_size": str(self._configured.batch_size),
            "env.total_steps": str(self._configured.total_steps),
        }
        return tuple(
            ConfigRow(row.name, told[row.name], BY_TRAINER) if told.get(row.name, row.value) != row.value else row
            for row in rows
        )

    def _run_started(self, event: RunStarted) -> None:
        self._started = event

    def _run_configured(self, event: RunConfigured) -> None:
        self._configured = event


def _given(started: RunStarted) -> Iterator[ConfigRow]:
    if started.settings:
        yield from (ConfigRow(setting.name, setting.value, setting.source) for setting in started.settings)
        return
    # Records of earlier versions tell values alone.
    for name, value in started.config.items():
        text = json.dumps(value) if isinstance(value, (dict, list)) else str(value)
        yield ConfigRow(f"env.{name}", text, "")
