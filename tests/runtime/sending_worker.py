"""A process that finishes groups and sends them, until it is done or killed: `sending_worker.py URL OUTBOX LAST_GROUP`.

Goes on after the highest group that an earlier one wrote, as a worker does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import GroupStarted
from atropos_tui.runtime.checks import CheckedGroup, GroupChecks
from atropos_tui.runtime.outbox import Outbox
from atropos_tui.runtime.sender import Sender


def group(group_id: int) -> CheckedGroup:
    tokens = [[group_id, *range(50)], [group_id, *range(50)]]
    checked = GroupChecks(2).check(
        {"tokens": tokens, "masks": tokens, "scores": [0.0, float(group_id)]},
        group_id=group_id,
        item="",
        max_token_len=0,
    )
    assert isinstance(checked, CheckedGroup)
    return checked


async def work(url: str, path: Path, last: int) -> None:
    outbox = Outbox(path)
    stream = EventStream()
    sender = Sender(outbox=outbox, api_url=url, stream=stream, key_prefix="run", delay_after=lambda failures: 0.02)
    running = asyncio.create_task(sender.run())
    sender.set_registration(0)
    for group_id in range(outbox.highest_group_id() + 1, last + 1):
        stream.publish(GroupStarted, group_id=group_id, item="", rollouts=2, step=0)
        await sender.submit(group(group_id), group_id, 0)
    assert await sender.drain(60.0)
    await sender.close()
    await running
    outbox.close()
    assert stream.counts().balanced


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
