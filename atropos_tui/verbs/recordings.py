"""Which file a person means: a run file, a run directory with one, a run by its name, or a JSONL of scored groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.monitor.discovery import find_run
from atropos_tui.monitor.run_file.place import RUN_FILE, is_run_file
from atropos_tui.verbs.finding import which_run

_LINES_TRIED = 20
_ENOUGH_OF_A_LINE = 64 << 10
RECORDING_HELP = "a run file, a run's directory or name, or a JSONL of scored groups"


def recording(named: str | None) -> Path:
    """The file. Raises UsageError when there is none, or nothing is in it."""
    path = Path(named).expanduser() if named is not None else None
    if path is not None and path.is_file():
        return path
    directory = path if path is not None and (path / RUN_FILE).is_file() else which_run(named).run_dir
    if not (directory / RUN_FILE).is_file():
        raise UsageError(f"there is no run file in {directory}", "the run was started with --record none")
    return directory / RUN_FILE


def is_recorded_run(path: Path) -> bool:
    """Whether it is a run file; else it is read as JSONL. Raises UsageError when it cannot be read."""
    try:
        return is_run_file(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path and its rights") from error


def check_jsonl(path: Path) -> None:
    """Raises UsageError for a file that does not begin with JSON; of single wrong lines the log tells."""
    with path.open("rb") as file:
        beginning = [
            line.lstrip() for line in islice(iter(lambda: file.readline(_ENOUGH_OF_A_LINE), b""), _LINES_TRIED)
        ]
    told = [line for line in beginning if line]
    if told and not any(line.startswith(b"{") for line in told):
        raise UsageError(f"{path} is neither a run file nor a JSONL of scored groups", f"name {RECORDING_HELP}")


def writer_is_alive(path: Path) -> Callable[[], bool]:
    """Whether the worker of the run file's directory answers; a copy elsewhere has none."""

    def is_alive() -> bool:
        run = find_run(path.parent) if path.name == RUN_FILE else None
        return run is not None and run.alive

    return is_alive
