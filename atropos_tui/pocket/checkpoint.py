"""All that a trainer needs to go on where it was: weights, state of the optimiser, and the step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.pocket.learner import Learner
from atropos_tui.pocket.weights import read_weights, write_weights

CHECKPOINT_FILE = "trainer.npz"
STEP = "step"


class Checkpoint:
    """One file in `directory`, replaced at every multiple of `interval` steps and when the trainer ends."""

    def __init__(self, directory: Path, interval: int) -> None:
        self.directory = directory.absolute()
        self.interval = interval
        self._path = self.directory / CHECKPOINT_FILE

    def restore(self, learner: Learner) -> int:
        """Put the learner where it was. Returns the step, 0 when there is no checkpoint. Raises UsageError."""
        if not self._path.exists():
            return 0
        try:
            saved = read_weights(self._path, like=learner.state() | {STEP: np.zeros((), np.int64)})
        except AtroposError as error:
            raise UsageError(
                f"cannot go on from {self._path}: {error.fault}", "give another --checkpoint-dir"
            ) from error
        step = int(saved.pop(STEP))
        learner.restore(saved)
        return step

    def write(self, learner: Learner, step: int) -> None:
        write_weights(learner.state() | {STEP: np.array(step)}, self._path)

    def is_due(self, step: int) -> bool:
        return step % self.interval == 0
