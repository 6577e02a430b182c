"""kill -9 in the middle of writing loses nothing that was confirmed."""

from __future__ import annotations

from pathlib import Path

from tests.run_file.killing import kill_while_writing


def test_a_killed_recorder_leaves_a_whole_file_with_every_confirmed_group(tmp_path: Path) -> None:
    assert kill_while_writing(tmp_path / "run.db", times=4) > 4
