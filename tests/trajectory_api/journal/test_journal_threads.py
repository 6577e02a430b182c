"""Who writes: the loop's own thread, or another one when that would take long. Either way the order stays."""

from __future__ import annotations

import asyncio
import random
import resource
import threading
from pathlib import Path

import pytest

from atropos_tui.trajectory_api.group import QueuedGroup, ScoreSummary
from atropos_tui.trajectory_api.journal import Journal
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.stored_json import StoredJson

LARGE = 3_000_000


def group(number: int, size: int = 100) -> QueuedGroup:
    text = StoredJson.plain(b"x" * size)
    return QueuedGroup(number, 0, 4, 12, ScoreSummary(0.5, 0.0, 1.0, 0.5), 1.0, text)


def writer_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "journal"]


def numbers_in(path: Path) -> list[int]:
    """The groups in the file, in its order."""
    log = LogFile(path)
    contents = log.contents()
    log.close()
    return sorted(contents.groups, key=lambda number: contents.groups[number].start)


async def test_groups_of_usual_size_need_no_thread(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "api.journal", long_write=60.0)
    for number in range(1, 100):
        await journal.keep([group(number)])
    assert writer_threads() == []
    journal.close()


@pytest.mark.parametrize("deflated", [False, True])
async def test_texts_of_a_long_queue_are_left_in_the_file(tmp_path: Path, deflated: bool) -> None:
    path = tmp_path / "api.journal"
    groups = [group(number) for number in range(1, 21)]
    for member in groups:
        member.stored = StoredJson.plain(random.Random(member.number).randbytes(5_000).hex().encode())
    texts = {member.number: member.stored.text() for member in groups}
    journal = Journal(path, in_memory=100_000)
    for member in groups:
        if deflated:
            member.stored = member.stored.deflate()
        await journal.keep([member])
        assert not journal.leaves_texts_in_file or member.stored.stored_bytes == 0
    assert journal.leaves_texts_in_file
    assert {member.number: member.stored.deflate().text() for member in groups} == texts
    journal.delivered(groups[:15], step=1)
    assert not journal.leaves_texts_in_file
    journal.close()

    journal = Journal(path, in_memory=20_000)
    waiting = [member for member, _ in journal.waiting_groups(journal.contents())]
    in_memory = [member.number for member in waiting if member.stored.stored_bytes]
    assert in_memory == ([16, 17, 18] if deflated else [16, 17])
    assert all(member.stored.size == len(texts[member.number]) for member in waiting)
    assert {member.number: member.stored.text() for member in waiting} == dict(list(texts.items())[15:])
    journal.close()


async def test_a_large_group_is_written_by_a_thread_and_none_overtakes_it(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path, long_write=60.0)
    await asyncio.gather(*(journal.keep([group(number, LARGE if number % 5 == 1 else 100)]) for number in range(1, 21)))
    journal.reset()
    await asyncio.gather(*(journal.keep([group(number, LARGE if number == 31 else 100)]) for number in range(31, 35)))
    assert len(writer_threads()) == 1
    journal.close()
    assert writer_threads() == []
    assert numbers_in(path) == [31, 32, 33, 34]


async def test_a_reset_while_a_group_is_written_harms_neither(tmp_path: Path) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path)
    keeping = asyncio.ensure_future(journal.keep([group(1, LARGE)]))
    await asyncio.sleep(0)
    journal.reset()
    await keeping
    await journal.keep([group(2)])
    journal.close()
    assert numbers_in(path) == [2]


async def test_after_a_write_that_took_long_the_next_ones_are_left_to_a_thread(tmp_path: Path) -> None:
    """Here every write counts as long; whether the next one comes soon enough after it is the machine's affair."""
    path = tmp_path / "api.journal"
    journal = Journal(path, long_write=0.0)
    number = 0
    while not writer_threads():
        number += 1
        assert number < 1000
        await journal.keep([group(number)])
    assert number > 1
    journal.delivered([group(1)], 1)
    journal.close()
    assert numbers_in(path) == list(range(2, number + 1))


async def test_who_waits_for_the_thread_is_told_when_the_disk_is_full(tmp_path: Path, small_files: None) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path)
    with pytest.raises(RequestError, match="File too large") as refused:
        await journal.keep([group(1, LARGE)])
    assert refused.value.status == 503
    assert journal.trouble == "File too large"
    await journal.keep([group(2)])
    assert journal.trouble == ""
    journal.close()
    assert numbers_in(path) == [2]


async def test_what_nobody_waits_for_leaves_the_file_whole_on_a_full_disk(tmp_path: Path, small_files: None) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path)
    for number in range(1, 4):
        await journal.keep([group(number, 99_000)])
    journal.delivered([group(number) for number in range(1, 3_000)], step=5)
    assert journal.trouble == "File too large"
    journal.close()
    assert numbers_in(path) == [1, 2, 3]


async def test_a_disk_that_takes_it_again_gets_it_with_the_next_record(tmp_path: Path, small_files: None) -> None:
    path = tmp_path / "api.journal"
    journal = Journal(path)
    for number in range(1, 4):
        await journal.keep([group(number, 99_000)])
    journal.delivered([group(number) for number in range(2, 3_000)], step=5)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    await journal.keep([group(9_000)])
    assert journal.trouble == ""
    journal.close()
    assert numbers_in(path) == [1, 9_000]
