"""Groups survive the death of the worker and of the trajectory API: the small form of `benchmarks/survival.py`."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.survival import Ordeal

GROUPS = 200
KILLS = 2


async def test_every_group_arrives_exactly_once_in_order_though_both_servers_are_killed(tmp_path: Path) -> None:
    account = await Ordeal(tmp_path, random.Random(1)).run(GROUPS, KILLS)
    assert account.faults == []
    assert len(account.received) >= GROUPS
    assert account.api_kills == account.worker_kills == KILLS
