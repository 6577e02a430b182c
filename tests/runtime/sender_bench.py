"""A sender with everything around it, for the tests of what it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from atropos_tui.ledger import EventStream, Outcome
from atropos_tui.ledger.events import EventBase, GroupStarted
from atropos_tui.runtime.checks import CheckedGroup, GroupChecks
from atropos_tui.runtime.outbox import Outbox
from atropos_tui.runtime.sender import Sender
from tests.runtime.scored_groups import scored_group

SOON = 0.02


class Watching:
    """A sink that keeps all events."""

    def __init__(self) -> None:
        self.events: list[EventBase] = []

    def publish(self, event: EventBase) -> None:
        self.events.append(event)

    def keep(self, content: object) -> None:
        del content

    def of(self, kind: type[EventBase], group_id: int | None = None) -> list[Any]:
        found = [event for event in list(self.events) if isinstance(event, kind)]
        return [event for event in found if group_id is None or event.group_id == group_id]


class Bench:
    """A sender with everything around it."""

    def __init__(self, api_url: str, path: Path | None, **options: Any) -> None:
        self.seen = Watching()
        self.stream = EventStream(self.seen)
        self.outbox = Outbox(path)
        options = {"delay_after": lambda failures: SOON, "timeout": 60.0, "key_prefix": "run"} | options
        self.sender = Sender(outbox=self.outbox, api_url=api_url, stream=self.stream, **options)
        self.running = asyncio.create_task(self.sender.run())

    async def submit(self, *group_ids: int, step: int = 0, length: int = 6) -> None:
        for group_id in group_ids:
            self.stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=2, step=step)
            await self.sender.submit(checked_group(group_id, length), group_id, step)

    async def drained(self) -> None:
        assert await self.sender.drain(60.0), f"{self.sender.depth} groups are left"

    def outcomes(self) -> dict[Outcome, int]:
        counts = self.stream.counts()
        assert counts.balanced, self.stream.violations
        return {outcome: count for outcome, count in counts.by_outcome.items() if count}

    async def close(self) -> None:
        await self.sender.close()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(self.running, 60)
        self.outbox.close()
        assert self.stream.counts().balanced, self.stream.violations


def checked_group(group_id: int, length: int = 6) -> CheckedGroup:
    group = scored_group([0.0, float(group_id)], length=length)
    result = GroupChecks(2).check(group, group_id=group_id, item=f"item {group_id}", max_token_len=-1)
    assert isinstance(result, CheckedGroup)
    return result


@contextlib.asynccontextmanager
async def bench(
    api_url: str, path: Path | None = None, *, env_id: int | None = 3, **options: Any
) -> AsyncIterator[Bench]:
    made = Bench(api_url, path, **options)
    if env_id is not None:
        made.sender.set_registration(env_id)
    try:
        yield made
    finally:
        await made.close()
