"""Pages of a run that is being recorded: no group is missed or doubled where memory and file meet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.group_pages import GroupPages
from atropos_tui.monitor.group_store import GroupFilter, MemoryGroupStore
from tests.run_file.recorded_run import RecordedRun

ANY = GroupFilter()


async def all_ids(pages: GroupPages, limit: int, wanted: GroupFilter = ANY) -> list[int]:
    ids: list[int] = []
    older_than = None
    while True:
        page = await pages.page(wanted, older_than, limit)
        ids += [row.group_id for row in page.rows]
        if (older_than := page.older_than) is None:
            assert page.total == len(ids)
            return ids


@pytest.mark.parametrize("limit", [1, 3, 4, 10, 200])
async def test_groups_in_memory_and_in_the_file_make_one_list(tmp_path: Path, limit: int) -> None:
    run = RecordedRun(tmp_path / "run.db")
    for _ in range(7):
        run.delivered()
    run.write()
    place = run.recorder.written_place
    newest = [run.skipped() for _ in range(4)]
    run.recorder.note_ended = lambda *entry: None  # type: ignore[method-assign]  # the disk is slow now
    run.view.drain()
    assert run.recorder.written_place == place
    assert await all_ids(run.view.groups, limit) == list(range(11, 0, -1))
    assert await all_ids(run.view.groups, limit, GroupFilter(outcome="skipped")) == newest[::-1]
    run.close()


async def test_what_memory_no_longer_has_comes_from_the_file(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db", memory=MemoryGroupStore(max_groups=5, max_bytes=10_000))
    for number in range(30):
        run.delivered(text=f"number {number}", tokens=100)
    run.write()
    assert await all_ids(run.view.groups, 8) == list(range(30, 0, -1))
    oldest = await run.view.groups.find(1)
    assert oldest is not None
    assert oldest.rollouts is not None
    assert b"number 0 0" in oldest.rollouts[0].messages
    run.close()


async def test_groups_of_an_earlier_life_are_listed_at_once(tmp_path: Path) -> None:
    first = RecordedRun(tmp_path / "run.db")
    first.delivered()
    first.close()
    second = RecordedRun(tmp_path / "run.db", first_group=2)
    assert await all_ids(second.view.groups, 10) == [1]
    second.skipped()
    second.view.drain()
    assert await all_ids(second.view.groups, 10) == [2, 1]
    second.close()


async def test_without_a_record_there_is_nothing_to_search() -> None:
    with pytest.raises(AtroposError, match="--record"):
        await GroupPages(MemoryGroupStore(), None).page(GroupFilter(search="word"), None, 10)


async def test_reading_does_not_wait_for_writing(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db")
    run.delivered()
    run.write()
    pages = await asyncio.gather(*(run.view.groups.page(ANY, None, 10) for _ in range(20)))
    assert {page.total for page in pages} == {1}
    run.close()
