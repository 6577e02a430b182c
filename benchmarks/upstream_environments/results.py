"""Where the results of runs are kept: a directory for each file and setup."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from atropos_tui.compat.inspection import Inspection
from benchmarks.upstream_environments.comparison import Comparison, compare
from benchmarks.upstream_environments.runs import Outcome, load_outcome


class Setup(StrEnum):
    """Who runs the environment, and to whose trajectory API it is served."""

    OURS = "ours"
    UPSTREAM = "upstream"
    SERVE_UPSTREAM = "serve-upstream"
    SERVE_OURS_TO_RUN_API = "serve-ours-to-run-api"
    SERVE_OURS = "serve-ours"


@dataclass(frozen=True)
class Results:
    """Results below a directory."""

    root: Path

    def emptied(self, file: str, setup: Setup) -> Path:
        """The directory for a run that starts anew."""
        directory = self._directory(file) / setup
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    def outcome(self, file: str, setup: Setup) -> Outcome | None:
        return load_outcome(self._directory(file) / setup)

    def comparison(self, file: str, ours: Setup, upstream: Setup) -> Comparison | None:
        """The groups of one setup beside those of another; None when one of them was not run or has none."""
        mine, theirs = self.outcome(file, ours), self.outcome(file, upstream)
        if mine is None or theirs is None or not (mine.groups and theirs.groups):
            return None
        return compare(mine.groups, theirs.groups, on_the_wire=mine.mode == "serve")

    def keep_inspection(self, file: str, inspection: Inspection) -> None:
        directory = self._directory(file)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "inspection.json").write_text(inspection.model_dump_json())

    def inspection(self, file: str) -> Inspection | None:
        kept = self._directory(file) / "inspection.json"
        return Inspection.model_validate(json.loads(kept.read_text())) if kept.exists() else None

    def _directory(self, file: str) -> Path:
        return self.root / file.replace("/", "__").removesuffix(".py")
