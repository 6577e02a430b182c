"""The merged configuration of a recorded run."""

from __future__ import annotations

from atropos_tui.ledger.events import GroupStarted
from atropos_tui.monitor.model import Model
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import ConfigRow


def recorded_config(reader: RunFileReader) -> tuple[ConfigRow, ...]:
    """That of the newest life in the file. Blocks; what tells of it comes before the first group."""
    lives = reader.lives()
    model = Model()
    for event in reader.events(lives[-1].first_seq if lives else 0):
        if isinstance(event, GroupStarted):
            break
        model.apply(event)
    return model.config()
