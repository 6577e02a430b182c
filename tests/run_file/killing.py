"""Kills a recording process in the middle of its work, again and again, and looks at what it left."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.run_file.reader import RunFileReader

ROOT = Path(__file__).resolve().parents[2]


def kill_while_writing(path: Path, times: int, seed: int = 0) -> int:
    """How many deliveries were confirmed in all. Raises AssertionError when the file lacks one of them."""
    chance = random.Random(seed)
    confirmed: list[int] = []
    for life in range(times):
        confirmed += _one_life(path, chance.randrange(1, 200), first_group=life * 1_000_000 + 1)
        _check(path, confirmed)
    return len(confirmed)


def _one_life(path: Path, after: int, first_group: int) -> list[int]:
    """The groups that were confirmed before the process was killed, which is soon after so many of them."""
    command = [sys.executable, "-m", "tests.run_file.writing_process", str(path), str(first_group)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(after)]
        process.kill()
        told += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return told


def _check(path: Path, confirmed: list[int]) -> None:
    reader = RunFileReader(path)
    kept = set(reader.group_ids(GroupFilter(outcome="delivered")))
    assert not set(confirmed) - kept, f"{len(set(confirmed) - kept)} of {len(confirmed)} confirmed groups are missing"
    newest = reader.find(confirmed[-1])
    assert newest is not None
    assert newest.rollouts
    assert [event.seq for event in reader.events()] == list(range(1, reader.extent().seq + 1))
    found = reader.page(GroupFilter(search="searched"), None, len(kept) + 1)
    assert {row.group_id for row in found.rows} == kept
    reader.close()
