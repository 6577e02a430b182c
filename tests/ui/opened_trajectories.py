"""The trajectories, opened on a recorded run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from textual.pilot import Pilot

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.ui.entry_bar import EntryBar
from atropos_tui.ui.panes.group_list import GroupListPane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.trajectories import TrajectoriesScreen
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource, ended_rows
from tests.ui.recorded_chats import chat_group, source_of_chats

LOADING = ("list", "group")


@dataclass
class Opened:
    pilot: Pilot[Any]
    app: ListenedApp
    groups: GroupListPane
    rollout: RolloutPane

    async def press(self, *keys: str) -> None:
        """Until what the keys have loaded, which a thread helps with, is there."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        await self.until(lambda: not any(worker.is_running for worker in self.app.workers if worker.group in LOADING))
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    async def group(self, group_id: int) -> None:
        """Until this group is shown."""
        await self.until(lambda: self.rollout.detail is not None and self.rollout.detail.row.group_id == group_id)

    async def filtered(self, text: str) -> None:
        await self.press("slash")
        entry = self.app.screen.query_one(EntryBar)
        entry.input.value = text
        await self.press("enter")

    def painted(self) -> list[str]:
        return painted(self.rollout)

    @property
    def last_said(self) -> str:
        return self.app.said[-1] if self.app.said else ""


def painted(canvas: Canvas) -> list[str]:
    return ["".join(segment.text for segment in canvas.render_line(y)) for y in range(canvas.size.height)]


@asynccontextmanager
async def opened(
    make_app: MakeApp, source: RecordedSource | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Opened]:
    app = make_app(source=source) if source else make_app()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.moment.known)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TrajectoriesScreen) and app.screen.query(RolloutPane))
        groups, rollout = app.screen.query_one(GroupListPane), app.screen.query_one(RolloutPane)
        await until(pilot, lambda: rollout.detail is not None)
        yield Opened(pilot, app, groups, rollout)


Chats = Callable[..., AbstractAsyncContextManager[Opened]]


def on_chats(make_app: MakeApp) -> Chats:
    """Opens trajectories whose newest group is one of long chats."""
    return lambda **options: opened(make_app, source_of_chats(chat_group()), **options)


def alone(rollout: RolloutDetail) -> RecordedSource:
    """A run whose newest group is this one rollout."""
    row = replace(ended_rows(1)[0], outcome=Outcome.DELIVERED, scores=(0.5,), error="", item="the item")
    return source_of_chats(GroupDetail(row=row, rollouts=(rollout,)))
