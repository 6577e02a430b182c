"""A journal that is written anew keeps what counts, whatever comes meanwhile, and takes no more room than that."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atropos_tui.trajectory_api.group import Place, QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.journal import Journal
from atropos_tui.trajectory_api.journal.contents import KEYS_REMEMBERED, delivered_record, group_record
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.journal.records import FILE_HEADER
from atropos_tui.trajectory_api.journal.rewriting import Rewriting
from atropos_tui.trajectory_api.stored_json import StoredJson

KIB = 1024


def group(number: int, size: int = KIB, key: str = "") -> QueuedGroup:
    text = b"%d " % number * (size // 4)
    return QueuedGroup(number, 0, 4, 12, ScoreSummary(0.5, 0.0, 1.0, 0.5), 1.0, StoredJson.plain(text), key)


def reopened(path: Path) -> tuple[dict[int, bytes], list[str]]:
    """The texts of the groups that wait, and the keys."""
    journal = Journal(path)
    contents = journal.contents()
    texts = {waiting.number: waiting.stored.text() for waiting, _ in journal.waiting_groups(contents)}
    keys = contents.remembered_keys()
    journal.close()
    return texts, keys


async def test_a_file_that_tells_mostly_of_what_is_gone_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=100 * KIB)
    kept = [group(number, 10 * KIB, key=f"run:{number}") for number in range(1, 41)]
    texts = {member.number: member.stored.text() for member in kept}
    for member in kept:
        await journal.keep([member])
    inode = path.stat().st_ino
    journal.delivered(kept[:35], step=7)

    # The new file is taken with the first record that comes when it is there.
    deadline = time.monotonic() + 60
    for number in itertools.count(100):
        if path.stat().st_ino != inode:
            break
        assert time.monotonic() < deadline
        texts[number] = (member := group(number, 8)).stored.text()
        await journal.keep([member])
    # Some of the small ones come before the new file is taken, as many as there is time for.
    assert path.stat().st_size < 100 * KIB + 400 * len(texts)
    assert kept[36].stored.text() == texts[37]
    late = group(1_000_000)
    texts[1_000_000] = late.stored.text()
    await journal.keep([late])
    journal.close()
    found, keys = reopened(path)
    assert found == {number: text for number, text in texts.items() if number > 35}
    assert keys == [f"run:{number}" for number in range(1, 41)]
    assert os.listdir(tmp_path) == [path.name]


async def test_what_comes_while_it_is_written_is_in_the_new_file(tmp_path: Path) -> None:
    """The rewriting has read the old file when more comes, is delivered and leaves its buffer."""
    path = tmp_path / "api.journal"
    log = LogFile(path)
    for number in range(1, 6):
        member = group(number)
        member.place = Place.BUFFERED if number == 5 else Place.QUEUED
        log.append(group_record(member))
    rewriting = Rewriting(log)
    log.append(group_record(group(6)))
    log.append(delivered_record([1, 2], 1))
    rewriting.run()
    log.append(group_record(group(7)))
    log.append(delivered_record([3], 2))
    rewriting.finish()
    log.append(group_record(group(8)))
    log.close()
    again = LogFile(path)
    contents = again.contents()
    assert set(contents.groups) == {4, 5, 6, 7, 8}
    assert contents.queued == {4, 6, 7, 8}
    assert (contents.step, contents.last_number) == (2, 8)
    again.close()


async def test_a_rewriting_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    path.with_name("api.journal.new").mkdir()
    journal = Journal(path, rewrite_after=10 * KIB)
    kept = [group(number, 10 * KIB) for number in range(1, 6)]
    for member in kept:
        await journal.keep([member])
    journal.delivered(kept[:4], step=1)
    for number in range(10, 20):
        await journal.keep([group(number)])
    journal.close()
    assert set(reopened(path)[0]) == {5, *range(10, 20)}


async def test_a_file_that_was_damaged_meanwhile_is_not_written_anew_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=10 * KIB)
    kept = [group(number, 10 * KIB) for number in range(1, 6)]
    for member in kept:
        await journal.keep([member])
    with path.open("r+b") as file:
        file.seek(len(FILE_HEADER))
        file.write(b"damage")
    journal.delivered(kept[:4], step=1)
    deadline = time.monotonic() + 60
    while "stays as large as it is" not in caplog.text:
        assert time.monotonic() < deadline
        await journal.keep([group(6)])
    journal.close()
    assert os.listdir(tmp_path) == [path.name]


async def test_the_new_file_remembers_no_more_keys_than_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    log = LogFile(path)
    for number in range(1, KEYS_REMEMBERED + 11):
        log.append(group_record(group(number, 4, key=f"{number}")))
    log.append(delivered_record(list(range(1, KEYS_REMEMBERED + 11)), 1))
    rewriting = Rewriting(log)
    rewriting.run()
    rewriting.finish()
    assert log.size < 3_000_000
    log.close()
    _, keys = reopened(path)
    assert (len(keys), keys[0]) == (KEYS_REMEMBERED, "11")


async def test_what_is_gone_counts_as_no_more_waiting_while_the_file_is_written_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "api.journal", rewrite_after=10 * KIB, in_memory=100 * KIB)
    kept = [group(number, 10 * KIB) for number in range(1, 41)]
    await journal.keep(kept)
    assert journal.leaves_texts_in_file
    journal.delivered(kept, step=1)
    assert not journal.leaves_texts_in_file
    journal.close()


async def test_what_went_while_a_thread_writes_is_not_in_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=10 * KIB)
    kept = [group(number, 100 * KIB) for number in range(1, 41)]
    await journal.keep(kept)
    inode = path.stat().st_ino
    large = group(50, 2_000 * KIB)
    keeping = asyncio.ensure_future(journal.keep([large]))
    await asyncio.sleep(0)
    journal.delivered(kept, step=1)
    await keeping
    async with asyncio.timeout(60):
        while path.stat().st_ino == inode:
            journal.delivered([], step=1)
            await asyncio.sleep(0.001)
    assert path.stat().st_size < 2_000 * KIB
    journal.close()
    texts, _ = reopened(path)
    assert texts == {50: large.stored.text()}


async def rewritten(journal: Journal, numbers: Iterator[int]) -> None:
    """Have the journal written anew, and its new file taken."""
    inode = journal.path.stat().st_ino
    gone = [group(number, 10 * KIB) for number in itertools.islice(numbers, 3)]
    for member in gone:
        member.place = Place.BUFFERED
    await journal.keep(gone)
    journal.delivered(gone, step=1)
    async with asyncio.timeout(30):
        while journal.path.stat().st_ino == inode:
            journal.delivered([], step=1)
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("size", [8, 4 * KIB])
async def test_the_latest_group_is_in_the_new_file_though_it_was_delivered(tmp_path: Path, size: int) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=10 * KIB)
    numbers = itertools.count(10)
    first, latest = group(1, size), group(2, size)
    text = latest.stored.text()
    await journal.keep([first])
    await journal.keep([latest])
    journal.delivered([latest], step=1)
    for _ in range(2):
        await rewritten(journal, numbers)
    journal.close()
    journal = Journal(path)
    contents = journal.contents()
    kept = journal.latest(contents)
    assert kept is not None
    assert kept.text() == text
    assert set(contents.groups) == {1}
    journal.close()


async def test_a_file_that_was_replaced_is_closed_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To free the blocks of a large one takes the system longer than the event loop may stand still."""
    closed: list[tuple[int, int]] = []
    close = os.close

    def noted(descriptor: int) -> None:
        closed.append((os.fstat(descriptor).st_ino, threading.get_ident()))
        close(descriptor)

    monkeypatch.setattr(os, "close", noted)
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=10 * KIB)
    reader = group(1)
    await journal.keep([reader])
    inode = path.stat().st_ino
    await rewritten(journal, itertools.count(10))
    assert [at for at, _ in closed if at == inode] == []
    assert reader.stored.text() == b"1 " * 256
    reader.leave(Place.DELIVERED)
    async with asyncio.timeout(30):
        while inode not in dict(closed):  # noqa: ASYNC110  a thread closes it
            await asyncio.sleep(0.001)
    assert dict(closed)[inode] != threading.get_ident()
    journal.close()


async def test_a_group_that_the_file_keeps_is_read_from_a_file_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, rewrite_after=10 * KIB)
    first = group(1, 2 * KIB)
    text = first.stored.text()
    await journal.keep([first])
    assert first.stored.stored_bytes == 0
    gone = [group(number, 10 * KIB) for number in range(2, 5)]
    await journal.keep(gone)
    inode = path.stat().st_ino
    journal.delivered(gone, step=1)
    deadline = time.monotonic() + 60
    while path.stat().st_ino == inode:
        assert time.monotonic() < deadline
        journal.delivered([], step=1)
    assert first.stored.text() == text
    assert first.stored.deflate().text() == text
    journal.close()
