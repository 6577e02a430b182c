"""Checkpoints of an environment: JSON files by step, read again from the newest that is not above the step."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

_STEP_FILE = re.compile(r"step-(\d+)\.json")
_COUNTER = re.compile(r"_\d+$")


def crosses(before: int, after: int, interval: int) -> bool:
    """Whether going from one step to the other reaches or passes a multiple of `interval`; ≤ 0 never does."""
    return interval > 0 and after > before and after // interval != before // interval


class CheckpointFiles:
    """The checkpoints of one environment, `{directory}/env_checkpoints/{name}/step-{step}.json`.

    `name` is what the trajectory API called the environment: its own name with a counter, which another registration
    may change. Reading therefore falls back to the directories of the same name with other counters.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._root = Path(directory) / "env_checkpoints"
        self._name = name

    def write(self, step: int, data: dict[str, Any]) -> Path:
        """Write or replace the checkpoint of a step, in one move. Raises OSError, and TypeError for what isn't JSON."""
        path = self._root / self._name / f"step-{step}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(data)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
        return path

    def newest(self, step: int) -> tuple[Path, dict[str, Any]] | None:
        """The newest readable checkpoint not above `step`, of our own name if there is any; None if there is none."""
        for directory in self._directories():
            for path in _steps_down_from(directory, step):
                data = _read(path)
                if data is not None:
                    return path, data
        return None

    def _directories(self) -> Iterator[Path]:
        own = self._root / self._name
        yield own
        base = _COUNTER.sub("", self._name)
        if self._root.is_dir():
            siblings = [path for path in self._root.iterdir() if path != own and _COUNTER.sub("", path.name) == base]
            yield from sorted(siblings, key=lambda path: path.stat().st_mtime, reverse=True)


def _steps_down_from(directory: Path, step: int) -> list[Path]:
    if not directory.is_dir():
        return []
    found = [(int(match[1]), path) for path in directory.iterdir() if (match := _STEP_FILE.fullmatch(path.name))]
    return [path for number, path in sorted(found, reverse=True) if number <= step]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        logger.warning("checkpoint %s cannot be read and is passed over: %s", path, error)
        return None
    return data if isinstance(data, dict) else None
