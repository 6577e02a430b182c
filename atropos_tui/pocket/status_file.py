"""What the trainer tells of itself, as a JSON file that is replaced after every step."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson


@dataclass(slots=True)
class TrainerStatus:
    """Counts since the trainer started; the metrics, means over trained tokens, are those of the newest update.

    `groups_received` counts the groups of every batch that was taken from the trajectory API, `groups_unusable` those
    of them that could not be trained on. `waiting_for` says in words what is missing, and is empty while nothing is.
    """

    step: int = 0
    groups_received: int = 0
    sequences_received: int = 0
    groups_unusable: int = 0
    mean_score: float | None = None
    loss: float | None = None
    entropy: float | None = None
    kl: float | None = None
    clip_fraction: float | None = None
    gradient_norm: float | None = None
    weight_version: int | None = None
    waiting_for: str = ""
    waiting_seconds: float = 0.0
    training_seconds: float = 0.0
    pushing_seconds: float = 0.0
    pid: int = field(default_factory=os.getpid)
    updated_at: float = field(default_factory=time.time)


class StatusFile:
    """Replaced in one step, so that a reader never finds half of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, status: TrainerStatus) -> None:
        status.updated_at = time.time()
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        unfinished.write_bytes(orjson.dumps(asdict(status)))
        unfinished.replace(self._path)
