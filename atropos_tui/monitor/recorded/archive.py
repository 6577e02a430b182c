"""All that can be asked of a run file: its groups, its moments, the steps of its trainer, its configuration."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.ledger.events import TrainerStatus
from atropos_tui.monitor.recorded.moments import Moments
from atropos_tui.monitor.recorded.recorded_config import recorded_config
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import ConfigRow


class Archive:
    """Methods of its parts block. Raises RunFileError when the file cannot be read."""

    def __init__(self, path: Path) -> None:
        self.reader = RunFileReader(path)
        self.moments = Moments(self.reader)
        self.steps = TrainerSteps(self.reader)

    def config(self) -> tuple[ConfigRow, ...]:
        """The configuration of the newest life in the file."""
        return recorded_config(self.reader)


class TrainerSteps:
    """When each step of the trainer began, as far as the record goes. For one thread at a time."""

    def __init__(self, reader: RunFileReader) -> None:
        self._reader = reader
        self._read_seq = 0
        self._step: int | None = None
        self._starts: list[float] = []

    def starts(self) -> list[float]:
        """In ascending order, in Unix seconds."""
        for event in self._reader.events_of("trainer_status", self._read_seq + 1):
            self._read_seq = event.seq
            if isinstance(event, TrainerStatus) and event.step != self._step:
                self._step = event.step
                self._starts.append(event.wall)
        return self._starts
