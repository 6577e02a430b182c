"""Trajectories: the groups that ended at the left, one rollout in full at the right."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from atropos_tui.errors import AtroposError
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.group_list import FILTERS, GroupListPane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.run_screen import RunScreen

_PAGE = 100


class TrajectoriesScreen(RunScreen):
    """On narrow terminals the list and the rollout take turns (class `-reading`)."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TRAJECTORIES, Scope.LIST)
    SCOPES = (Scope.TRAJECTORIES, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("rollout.next", "rollout.previous", label="rollout"),
        hint("group.next", "group.previous", label="group"),
        hint("rollout.best", "rollout.worst", label="best, worst"),
        hint("rollout.view", label="messages, tokens"),
        hint("list.filter"),
        hint("show.help"),
        hint("app.back"),
        hint("token.lens"),
        hint("token.least"),
        hint("token.previous", "token.next", label="token"),
    )
    AUTO_FOCUS = "#groups"

    def __init__(self, group_id: int | None = None) -> None:
        super().__init__()
        self._wanted = group_id

    def compose_middle(self) -> ComposeResult:
        with Horizontal(id="trajectories"):
            yield GroupListPane()
            yield RolloutPane()

    def on_mount(self) -> None:
        super().on_mount()
        if self._wanted is not None:
            self._read()
            self._load_group(self._wanted)
        self._load_newest()

    def show(self, moment: Moment) -> None:
        super().show(moment)
        if moment.known and not self.groups.groups and not self.groups.failure and self.groups.newer:
            self._load_newest()

    @property
    def groups(self) -> GroupListPane:
        return self.query_one(GroupListPane)

    @property
    def rollout(self) -> RolloutPane:
        return self.query_one(RolloutPane)

    @property
    def pane(self) -> Pane:
        return self.rollout if self.rollout.has_focus else self.groups

    def back(self) -> bool:
        if not self.rollout.has_focus:
            return False
        self.remove_class("-reading")
        self.groups.focus()
        return True

    def action_open(self) -> None:
        self._read()

    def action_switch(self) -> None:
        if not self.back():
            self._read()

    def action_move(self, by: int) -> None:
        if self.pane is self.rollout:
            self.rollout.move_cursor(by)
        else:
            self._move_in_list(by)

    def action_move_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.pane.size.height * 2 // 3))

    def action_move_to_end(self, direction: int) -> None:
        if self.pane is self.groups and direction < 0 and self.groups.cursor == 0 and self.groups.newer:
            self._load_newest()
        self.action_move(direction * 1_000_000)

    def action_step_to_group(self, by: int) -> None:
        self._move_in_list(by)

    def action_step_to_rollout(self, by: int) -> None:
        self.rollout.step_to_rollout(by)

    def action_best_rollout(self) -> None:
        self.rollout.to_extreme(1)

    def action_worst_rollout(self) -> None:
        self.rollout.to_extreme(-1)

    def action_next_view(self) -> None:
        self.rollout.next_view()

    def action_next_lens(self) -> None:
        self.rollout.next_lens()

    def action_step_to_token(self, by: int) -> None:
        self.rollout.step_to_token(by)

    def action_least_likely_token(self) -> None:
        self.rollout.to_least_likely()

    def action_next_outcome(self) -> None:
        position = FILTERS.index(self.groups.outcome)
        self.groups.outcome = FILTERS[(position + 1) % len(FILTERS)]
        self.groups.cursor = 0
        self._load_newest()

    def _read(self) -> None:
        self.add_class("-reading")
        self.rollout.focus()

    def _move_in_list(self, by: int) -> None:
        before = self.groups.selected
        self.groups.move_cursor(by)
        if self.groups.wants_more:
            self._load_older()
        if self.groups.selected is not None and self.groups.selected is not before:
            self._load_group(self.groups.selected.group_id)

    @work(exclusive=True, group="list")
    async def _load_newest(self) -> None:
        groups = self.groups
        try:
            groups.start(await self.atropos.source.groups(limit=_PAGE, outcome=groups.outcome or ""))
        except (AtroposError, OSError) as error:
            groups.failure = str(error)
            groups.redraw()
            return
        if self._wanted is not None:
            groups.select(self._wanted)
            self._wanted = None
        elif groups.selected is not None:
            self._load_group(groups.selected.group_id)

    @work(exclusive=True, group="list")
    async def _load_older(self) -> None:
        groups = self.groups
        try:
            page = await self.atropos.source.groups(
                older_than=groups.older_than, limit=_PAGE, outcome=groups.outcome or ""
            )
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "error")
            return
        groups.extend(page)

    @work(exclusive=True, group="group")
    async def _load_group(self, group_id: int) -> None:
        try:
            self.rollout.open_group(await self.atropos.source.group(group_id))
        except (AtroposError, OSError) as error:
            self.rollout.fail(str(error))
