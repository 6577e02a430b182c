"""The outbox keeps every group until it is accepted: in order, through crashes, on one machine's disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.runtime import outbox as outbox_module
from atropos_tui.runtime.encoding import EncodedGroup, encode_group
from atropos_tui.runtime.outbox import Outbox, OutboxError
from tests.runtime.scored_groups import scored_group

BODY = encode_group(scored_group())


def add(outbox: Outbox, group_id: int, body: EncodedGroup = BODY) -> None:
    outbox.add(
        group_id,
        key=f"run:{group_id}",
        item=f"item {group_id}",
        rollouts=2,
        step=group_id * 10,
        wall=1000.0 + group_id,
        body=body,
    )


def ids(outbox: Outbox) -> list[int]:
    return [row.group_id for row in outbox.pending()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "outbox.db"


@pytest.fixture(params=["on disk", "in memory"])
def outbox(request: pytest.FixtureRequest, path: Path) -> Iterator[Outbox]:
    outbox = Outbox(path if request.param == "on disk" else None)
    yield outbox
    outbox.close()


class TestRows:
    def test_a_group_comes_back_as_it_was_added(self, outbox: Outbox) -> None:
        large = encode_group(scored_group([0.0, 1.0], length=2000))
        add(outbox, 4, large)
        (row,) = outbox.pending()
        assert (row.group_id, row.key, row.item, row.rollouts, row.step, row.wall) == (
            4,
            "run:4",
            "item 4",
            2,
            40,
            1004.0,
        )
        assert row.body == large
        assert outbox.get(4) == row

    def test_groups_wait_in_the_order_in_which_they_were_added(self, outbox: Outbox) -> None:
        for group_id in (3, 1, 2):
            add(outbox, group_id)
        assert ids(outbox) == [3, 1, 2]
        assert [row.group_id for row in outbox.pending(limit=2)] == [3, 1]
        assert (outbox.depth(), outbox.oldest_wall()) == (3, 1003.0)

    def test_a_delivered_group_is_forgotten(self, outbox: Outbox) -> None:
        add(outbox, 1)
        add(outbox, 2)
        outbox.mark_delivered(1)
        assert (ids(outbox), outbox.depth(), outbox.oldest_wall(), outbox.get(1)) == ([2], 1, 1002.0, None)

    def test_a_stale_group_is_forgotten(self, outbox: Outbox) -> None:
        add(outbox, 1)
        outbox.mark_stale(1)
        assert (ids(outbox), outbox.depth(), outbox.oldest_wall()) == ([], 0, None)

    def test_a_refused_group_is_kept_with_its_answer_but_waits_no_longer(self, outbox: Outbox) -> None:
        add(outbox, 1)
        outbox.mark_refused(1, 422, "no scores")
        assert (ids(outbox), outbox.depth(), outbox.get(1)) == ([], 0, None)
        (refused,) = outbox.refused()
        assert (refused.answer_status, refused.answer, refused.group.group_id) == (422, "no scores", 1)
        assert refused.group.body == BODY

    def test_only_so_many_refused_groups_are_kept(self, outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(outbox_module, "REFUSED_KEPT", 3)
        for group_id in range(1, 6):
            add(outbox, group_id)
            outbox.mark_refused(group_id, 422, "")
        assert [row.group.group_id for row in outbox.refused()] == [5, 4, 3]

    def test_attempts_are_counted(self, outbox: Outbox) -> None:
        add(outbox, 1)
        outbox.mark_attempt(1)
        outbox.mark_attempt(1)
        assert [row.attempts for row in outbox.pending()] == [2]

    def test_the_highest_group_is_known_even_when_it_is_gone(self, outbox: Outbox) -> None:
        assert outbox.highest_group_id() == 0
        for group_id in (7, 5):
            add(outbox, group_id)
            outbox.mark_delivered(group_id)
        assert outbox.highest_group_id() == 7

    def test_many_threads_may_use_it(self, outbox: Outbox) -> None:
        def work(first: int) -> None:
            for group_id in range(first, first + 25):
                add(outbox, group_id)
                if group_id % 2:
                    outbox.mark_delivered(group_id)

        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(ids(outbox)) == [first + number for first in (0, 100, 200, 300) for number in range(0, 25, 2)]
        assert outbox.depth() == 52


class TestRestart:
    def test_what_waited_is_there_again_in_order(self, path: Path) -> None:
        first = Outbox(path)
        for group_id in (2, 1, 3, 4):
            add(first, group_id)
        first.mark_delivered(1)
        first.mark_refused(3, 422, "no")
        first.mark_attempt(4)
        first.close()
        second = Outbox(path)
        assert [(row.group_id, row.attempts) for row in second.pending()] == [(2, 0), (4, 1)]
        assert [row.group.group_id for row in second.refused()] == [3]
        assert (second.depth(), second.oldest_wall(), second.highest_group_id()) == (2, 1002.0, 4)
        second.close()

    def test_inherited_groups_are_those_of_the_process_before(self, path: Path) -> None:
        first = Outbox(path)
        assert first.inherited() == []
        add(first, 1)
        add(first, 2)
        assert first.inherited() == []
        first.mark_delivered(1)
        first.close()
        second = Outbox(path)
        add(second, 3)
        (left,) = second.inherited()
        assert (left.group_id, left.item, left.rollouts, left.step) == (2, "item 2", 2, 20)
        assert (left.raw_bytes, left.wire_bytes) == (BODY.raw_bytes, BODY.wire_bytes)
        second.close()

    @pytest.mark.parametrize("round_", range(3))
    def test_a_killed_process_loses_no_group_that_it_had_written(self, path: Path, round_: int) -> None:
        writer = subprocess.Popen([sys.executable, "-c", _WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(20 + 37 * round_)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        assert writer.wait(60) == -signal.SIGKILL
        writer.stdout.close()
        outbox = Outbox(path)
        rows = outbox.pending(limit=outbox.depth())
        assert [row.group_id for row in rows[: len(told)]] == told
        assert len(rows) <= len(told) + 1
        assert all(row.body == BODY for row in rows)
        outbox.close()


class TestTrouble:
    def test_a_second_process_cannot_open_the_same_file(self, path: Path) -> None:
        first = Outbox(path)
        add(first, 1)
        attempt = subprocess.run(
            [sys.executable, "-c", _OPEN, str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        assert "is in use by another process" in attempt.stdout
        assert ids(first) == [1]
        first.close()

    def test_a_file_that_is_no_outbox_is_left_alone(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes(b"a picture, or anything else of some length" * 100)
        with pytest.raises(UsageError, match="is no outbox"):
            Outbox(path)
        assert path.read_bytes().startswith(b"a picture")

    def test_a_file_of_another_version_is_left_alone(self, path: Path) -> None:
        path.parent.mkdir()
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 99")
        database.close()
        with pytest.raises(UsageError, match="format 99"):
            Outbox(path)

    def test_a_directory_in_place_of_the_file_is_a_usage_error(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot open the outbox"):
            Outbox(tmp_path)

    def test_a_full_disk_is_told_and_nothing_half_written(self, path: Path) -> None:
        outbox = Outbox(path)
        add(outbox, 1)
        limit_file_size(outbox)
        large = EncodedGroup(os.urandom(4_000_000), True, 1, 1)
        with pytest.raises(OutboxError, match="cannot be written: the disk is full; free space on /"):
            add(outbox, 2, large)
        assert (ids(outbox), outbox.depth(), outbox.highest_group_id()) == ([1], 1, 1)
        lift_limit(outbox)
        add(outbox, 2, large)
        assert ids(outbox) == [1, 2]
        outbox.close()

    def test_a_delivered_group_waits_no_longer_even_if_the_disk_refuses_to_know(self, path: Path) -> None:
        outbox = Outbox(path)
        add(outbox, 1)
        add(outbox, 2)
        outbox._database.execute("PRAGMA query_only = ON")
        with pytest.raises(OutboxError):
            outbox.mark_delivered(1)
        assert outbox.depth() == 1
        outbox._database.execute("PRAGMA query_only = OFF")
        add(outbox, 3)
        assert ids(outbox) == [2, 3]
        outbox.close()


def limit_file_size(outbox: Outbox) -> None:
    """SQLite itself then says what it says on a full disk."""
    (pages,) = outbox._database.execute("PRAGMA page_count").fetchone()
    outbox._database.execute(f"PRAGMA max_page_count = {pages + 10}")


def lift_limit(outbox: Outbox) -> None:
    outbox._database.execute("PRAGMA max_page_count = 1000000")


_OPEN = """
import sys
from pathlib import Path
from atropos_tui.errors import UsageError
from atropos_tui.runtime.outbox import Outbox
try:
    Outbox(Path(sys.argv[1]))
except UsageError as error:
    print(error)
"""

_WRITE_FOR_EVER = """
import itertools, sys
from pathlib import Path
from atropos_tui.runtime.encoding import EncodedGroup
from atropos_tui.runtime.outbox import Outbox
outbox = Outbox(Path(sys.argv[1]))
body = EncodedGroup(BODY)
for group_id in itertools.count(1):
    outbox.add(group_id, key=f"run:{group_id}", item="", rollouts=2, step=0, wall=0.0, body=body)
    print(group_id, flush=True)
""".replace("BODY", f"{BODY.opened!r}, {BODY.gzipped}, {BODY.length}, {BODY.crc}")
