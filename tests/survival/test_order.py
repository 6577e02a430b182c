"""Groups leave the outbox in the order in which they entered it, also when many are finished at the same moment."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from atropos_tui.runtime.courier import Courier
from tests.runtime.scripted_api import scripted_api
from tests.runtime.sender_bench import bench

GROUPS = 60


@pytest.fixture
def threads_that_lose_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other group is handed to the courier late, as if its thread had to wait for the processor just then."""
    put = Courier.put

    def put_late(courier: Courier, group_id: int) -> None:
        time.sleep(0.003 * (group_id % 2))
        put(courier, group_id)

    monkeypatch.setattr(Courier, "put", put_late)


@pytest.mark.usefixtures("threads_that_lose_their_turn")
async def test_groups_that_are_finished_at_once_leave_in_the_order_in_which_they_entered(tmp_path: Path) -> None:
    with scripted_api() as api:
        async with bench(api.url, tmp_path / "outbox.db", env_id=None) as b:
            await asyncio.gather(*(b.submit(group_id) for group_id in range(1, GROUPS + 1)))
            entered = [row.group_id for row in b.outbox.pending(limit=GROUPS)]
            b.sender.set_registration(0)
            await b.drained()
        assert len(entered) == GROUPS
        assert api.group_ids == entered
