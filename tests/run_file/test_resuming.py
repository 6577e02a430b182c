"""What a worker that starts again in a run's directory learns of the lives before."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.monitor.run_file.resume import Begun, begun_in
from tests.run_file.recorded_run import RecordedRun


def closed(run: RecordedRun) -> None:
    run.write()
    run.view.close_record()


def test_the_highest_number_of_a_group_is_known_whatever_became_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    assert begun_in(path) == Begun()
    first = RecordedRun(path)
    first.delivered()
    first.skipped()
    assert first.started() == 3
    closed(first)
    assert begun_in(path).highest_group == 3

    # A life that only takes over an old group knows no more than that, and forgets no number that has ended since.
    second = RecordedRun(path, first_group=4)
    second.skipped()
    second.take_over(1)
    closed(second)
    begun = begun_in(path)
    assert (begun.highest_group, begun.groups) == (4, 3)


def test_a_file_that_is_no_run_file_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(b"something else")
    assert begun_in(path) == Begun()
