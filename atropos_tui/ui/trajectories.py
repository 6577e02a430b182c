"""Trajectories: the groups that ended at the left, one rollout in full at the right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.snapshot import GroupPage
from atropos_tui.ui.exporting import clipboard_sequence, rollout_as_text, write_group
from atropos_tui.ui.filter_language import Filter, parse_filter
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.group_list import ENDED_OUTCOMES, GroupListPane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.run_screen import RunScreen

_PAGE = 100
_FILTER_EXAMPLE = 'score<0.5 outcome:skipped step>100 "text" -took>5'
# A filter that lets nothing through must not read a long run to its beginning.
_MOST_LOOKED_AT = 5_000


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
        hint("rollout.compare"),
        hint("show.help"),
        hint("app.back"),
        hint("list.outcome"),
        hint("group.copy"),
        hint("token.lens"),
        hint("token.least"),
        hint("token.previous", "token.next", label="token"),
    )

    AUTO_FOCUS = "#groups"

    def __init__(self, group_id: int | None = None) -> None:
        super().__init__()
        self.groups = GroupListPane()
        self.rollout = RolloutPane()
        self.filter_bar = Input(id="filter", placeholder=_FILTER_EXAMPLE, compact=True)
        self.filter_bar.cursor_blink = False
        self._wanted = group_id
        self.set_class(group_id is not None, "-reading")
        if group_id is not None:
            self.AUTO_FOCUS = "#rollout"  # type: ignore[misc]  # Textual asks the instance

    def compose_middle(self) -> ComposeResult:
        with Horizontal(id="trajectories"):
            yield self.groups
            yield self.rollout
        yield self.filter_bar

    def on_mount(self) -> None:
        if self._wanted is not None:
            self._load_group(self._wanted)
        self._load_newest()

    def show(self, moment: Moment) -> None:
        super().show(moment)
        if self.groups.newer and not self.groups.groups and not self._list_is_loading:
            self._load_newest()

    @property
    def pane(self) -> Pane:
        return self.rollout if self.rollout.has_focus else self.groups

    def back(self) -> bool:
        if self.filter_bar.display:
            self._close_filter_bar()
            return True
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
        groups = self.groups
        if self.pane is groups and direction < 0 and groups.cursor == 0 and (groups.newer or groups.failure):
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

    def action_compare(self) -> None:
        self.rollout.compare()

    def action_compare_with_next(self) -> None:
        self.rollout.step_beside()

    def action_next_view(self) -> None:
        self.rollout.next_view()

    def action_next_lens(self) -> None:
        self.rollout.next_lens()

    def action_step_to_token(self, by: int) -> None:
        self.rollout.step_to_token(by)

    def action_least_likely_token(self) -> None:
        self.rollout.to_least_likely()

    def action_next_outcome(self) -> None:
        """Through the outcomes, and after the last one to all of them again."""
        order = (None, *ENDED_OUTCOMES)
        outcome = order[(order.index(self.groups.filter.outcome) + 1) % len(order)]
        self._apply(parse_filter(f"outcome:{outcome}" if outcome else ""))

    def action_filter(self) -> None:
        self.filter_bar.value = self.groups.filter.text
        self.filter_bar.display = True
        self.filter_bar.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            wanted = parse_filter(event.value)
        except UsageError as error:
            self.atropos.say(str(error), "error")
            return
        self._close_filter_bar()
        self._apply(wanted)

    def action_copy(self) -> None:
        rollout = self.rollout
        if not rollout.rollouts:
            self.atropos.say("there is no rollout to copy", "warning")
            return
        try:
            self.atropos.send_to_terminal(clipboard_sequence(rollout_as_text(rollout.rollouts[rollout.rollout])))
        except UsageError as error:
            self.atropos.say(str(error), "warning")
            return
        self.atropos.say("sent to the terminal's clipboard; some terminals ignore that, Y writes a file")

    @work(group="files")
    async def action_write(self) -> None:
        detail = self.rollout.detail
        if detail is None:
            self.atropos.say("there is no group to write", "warning")
            return
        try:
            path = await asyncio.to_thread(write_group, detail, Path.cwd())
            self.atropos.say(f"written to {path}")
        except UsageError as error:
            self.atropos.say(str(error), "error")

    def _apply(self, wanted: Filter) -> None:
        self.groups.filter, self.groups.cursor = wanted, 0
        self._load_newest()

    def _close_filter_bar(self) -> None:
        self.filter_bar.display = False
        self.groups.focus()

    def _read(self) -> None:
        self.add_class("-reading")
        self.rollout.focus()

    @property
    def _list_is_loading(self) -> bool:
        return any(worker.node is self and worker.group == "list" and worker.is_running for worker in self.workers)

    def _move_in_list(self, by: int) -> None:
        before = self.groups.selected
        self.groups.move_cursor(by)
        if self.groups.wants_more and not self._list_is_loading:
            self._load_older()
        if self.groups.selected is not None and self.groups.selected is not before:
            self._load_group(self.groups.selected.group_id)

    @work(exclusive=True, group="list")
    async def _load_newest(self) -> None:
        groups = self.groups
        try:
            groups.start(await self._filtered_page(None))
        except (AtroposError, OSError) as error:
            groups.fail(str(error))
            return
        if self._wanted is not None:
            groups.select(self._wanted)
            self._wanted = None
        elif groups.selected is not None:
            self._load_group(groups.selected.group_id)

    @work(exclusive=True, group="list")
    async def _load_older(self) -> None:
        try:
            self.groups.extend(await self._filtered_page(self.groups.older_than))
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "error")

    async def _filtered_page(self, older_than: int | None) -> GroupPage:
        """At least a page of groups that the filter lets through, unless too many others lie between them."""
        wanted, found, looked_at = self.groups.filter, [], 0
        while True:
            page = await self.atropos.source.groups(older_than=older_than, limit=_PAGE, outcome=wanted.outcome or "")
            found += [row for row in page.rows if wanted(row)]
            looked_at += len(page.rows)
            older_than = page.older_than
            if older_than is None or len(found) >= _PAGE or looked_at >= _MOST_LOOKED_AT:
                return GroupPage(tuple(found), older_than, page.total)

    @work(exclusive=True, group="group")
    async def _load_group(self, group_id: int) -> None:
        try:
            self.rollout.open_group(await self.atropos.source.group(group_id))
        except (AtroposError, OSError) as error:
            self.rollout.fail(str(error))
