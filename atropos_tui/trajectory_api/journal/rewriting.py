"""Writes what a journal still says into a new file, while records come to the end of the old one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from atropos_tui.errors import UsageError
from atropos_tui.trajectory_api.journal.contents import Contents, entered_record, latest_record
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.journal.records import FILE_HEADER, BrokenRecordError, Record, read_exactly, records

_COPY_AT_ONCE: Final = 4 * 1024 * 1024
# So little is left to whoever appends, for then nothing may be appended.
_REST: Final = 1024 * 1024


class Rewriting:
    """One new file beside the old one. `run` belongs to a thread of its own, the other methods to whoever appends."""

    def __init__(self, old: LogFile) -> None:
        self._old = old
        self._copied = old.size
        self._path = old.path.with_name(f"{old.path.name}.new")
        self._new: LogFile | None = None
        self._failure: OSError | UsageError | BrokenRecordError | None = None
        self._cancelled = False
        self.has_ended = False

    def run(self) -> None:
        """Write the new file, all but a little rest of the newest records."""
        try:
            self._write()
        except (OSError, UsageError, BrokenRecordError) as error:
            self._failure = error
            self.discard()
        self.has_ended = True

    def cancel(self) -> None:
        """Let `run` end soon."""
        self._cancelled = True

    def discard(self) -> None:
        """Remove the new file, once `run` has ended."""
        if self._new is not None:
            self._new.close()
            self._path.unlink(missing_ok=True)

    def finish(self) -> None:
        """Let the new file take the old one's place. Raises what `run` met, or OSError; then the old one stays."""
        if self._failure is not None:
            raise self._failure
        assert self._new is not None
        try:
            self._copy(self._new, self._old.size)
            self._path.replace(self._old.path)
        except OSError:
            self.discard()
            raise
        self._old.take_over(self._new)

    def _write(self) -> None:
        self._path.unlink(missing_ok=True)
        contents = Contents.of(records(self._old.descriptor, len(FILE_HEADER), self._copied, verified=False))
        new = self._new = LogFile(self._path)
        for state in contents.state_records():
            new.append(state)
        for start, end in _runs(contents.groups.values()):
            self._copy_bytes(new, start, end)
        if contents.latest is not None and contents.latest.about["number"] not in contents.groups:
            new.append(latest_record(contents.latest, contents.latest.text(self._old.descriptor)))
        was_buffered = [number for number, record in contents.groups.items() if not record.about["queued"]]
        new.append(entered_record([number for number in was_buffered if number in contents.queued]))
        while not self._cancelled and self._old.size - self._copied > _REST:
            self._copy(new, self._old.size)
        os.fsync(new.descriptor)

    def _copy(self, new: LogFile, end: int) -> None:
        """Copy what came since."""
        self._copy_bytes(new, self._copied, end)
        self._copied = end

    def _copy_bytes(self, new: LogFile, start: int, end: int) -> None:
        while start < end and not self._cancelled:
            piece = read_exactly(self._old.descriptor, start, min(_COPY_AT_ONCE, end - start))
            new.append([piece])
            start += len(piece)


def _runs(waiting: Iterable[Record]) -> list[tuple[int, int]]:
    """Where the records are in the file; neighbours together."""
    runs: list[tuple[int, int]] = []
    for record in sorted(waiting, key=lambda record: record.start):
        if runs and runs[-1][1] == record.start:
            runs[-1] = (runs[-1][0], record.end)
        else:
            runs.append((record.start, record.end))
    return runs
