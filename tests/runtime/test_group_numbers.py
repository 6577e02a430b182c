"""Numbers of groups are unique in a run, also when it is started again and whatever became of the groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from atropos_tui.ledger import EventStream
from tests.runtime.serving_parts import RecordedEvents, ScriptedEnv, good_group, serving, until

MakeEnv = Callable[..., ScriptedEnv]


async def numbers_of_one_life(env: ScriptedEnv, outbox: Path | None, highest_before: int = 0) -> list[int]:
    """The numbers of the first groups that are started, all of which are skipped."""

    async def all_the_same(item: Any) -> Any:
        return {**good_group(), "scores": [1.0] * 4}, []

    env.script = all_the_same
    env.items = iter(range(5))
    seen = RecordedEvents()
    env.attach(EventStream(seen), outbox, highest_group_before=highest_before)
    async with serving(env):
        await until(lambda: len(seen.of("group_skipped")) == 5)
    return [event.group_id for event in seen.of("group_started")]


async def test_a_run_goes_on_above_the_numbers_that_its_record_has(make_env: MakeEnv, tmp_path: Path):
    outbox = tmp_path / "outbox.db"
    assert await numbers_of_one_life(make_env(), outbox) == [1, 2, 3, 4, 5]
    assert await numbers_of_one_life(make_env(), outbox, highest_before=5) == [6, 7, 8, 9, 10]


async def test_what_the_record_told_once_is_known_when_it_is_gone(make_env: MakeEnv, tmp_path: Path):
    outbox = tmp_path / "outbox.db"
    assert min(await numbers_of_one_life(make_env(), outbox, highest_before=40)) == 41
    assert min(await numbers_of_one_life(make_env(), outbox)) == 41


async def test_without_a_record_and_a_file_numbers_begin_with_one(make_env: MakeEnv):
    assert await numbers_of_one_life(make_env(), None) == [1, 2, 3, 4, 5]
