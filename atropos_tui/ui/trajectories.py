"""Trajectories: the groups that ended at the left, one rollout in full at the right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.group_detail import GroupPage
from atropos_tui.monitor.group_filter import parse_terms, search_words
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.monitor.notes import Notes
from atropos_tui.ui.entry_bar import EntryBar
from atropos_tui.ui.keys import Scope, bindings, hint
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.group_list import ENDED_OUTCOMES, GroupListPane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.taking_away import TakingAwayScreen

_PAGE = 100
_FILTER_EXAMPLE = 'score<0.5 outcome:skipped step>100 "text" -took>5'


class TrajectoriesScreen(TakingAwayScreen):
    """On narrow terminals the list and the rollout take turns (class `-reading`), elsewhere if asked to (`-alone`)."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TRAJECTORIES, Scope.LIST)
    SCOPES = (Scope.TRAJECTORIES, Scope.LIST, Scope.EVERYWHERE)
    FOOTER = (
        hint("rollout.next", "rollout.previous", label="rollout"),
        hint("group.next", "group.previous", label="group"),
        hint("rollout.best", "rollout.worst", label="best, worst"),
        hint("rollout.view", label="messages, tokens"),
        hint("list.filter"),
        hint("rollout.facts"),
        hint("rollout.compare"),
        hint("show.help"),
        hint("app.back"),
        hint("list.sort"),
        hint("turn.next"),
        hint("message.unfold"),
        hint("group.bookmark", "group.note", label="bookmark, note"),
        hint("list.export"),
        hint("token.lens"),
        hint("token.least"),
        hint("token.previous", "token.next", label="token"),
    )

    AUTO_FOCUS = "#groups"

    def __init__(self, group_id: int | None = None) -> None:
        super().__init__()
        self.notes = Notes(None)
        self.groups = GroupListPane(self.notes)
        self.rollout = RolloutPane()
        self.entry = EntryBar()
        self._wanted = group_id
        self.set_class(group_id is not None, "-reading")
        if group_id is not None:
            self.AUTO_FOCUS = "#rollout"  # type: ignore[misc]  # Textual asks the instance

    def compose_middle(self) -> ComposeResult:
        with Horizontal(id="trajectories"):
            yield self.groups
            yield self.rollout
        yield self.entry

    def on_mount(self) -> None:
        self.notes.path = self.atropos.source.notes_file
        if self._wanted is not None:
            self._load_group(self._wanted)
        self._load_first()

    def show(self, moment: Moment) -> None:
        super().show(moment)
        if self.groups.newer and not self.groups.groups and not self._list_is_loading:
            self._load_first()

    def time_moved(self) -> None:
        self._load_first()

    @property
    def pane(self) -> Pane:
        return self.rollout if self.rollout.has_focus else self.groups

    @property
    def query_of_list(self) -> GroupQuery:
        return self.notes.resolved(self.groups.terms, self.groups.order)

    # -- moving

    def back(self) -> bool:
        if self.entry.is_open:
            self._close_entry()
            return True
        if not self.rollout.has_focus and not self.has_class("-alone"):
            return False
        self.remove_class("-reading", "-alone")
        self.groups.focus()
        return True

    def action_open(self) -> None:
        self._read()

    def action_switch(self) -> None:
        if self.entry.is_open:
            self._close_entry()
        elif self.rollout.has_focus:
            self.remove_class("-reading")
            self.groups.focus()
        else:
            self._read()

    def action_zoom(self) -> None:
        """The pane with the focus on the whole screen, and back."""
        if self.pane.region.width == self.region.width and not self.has_class("-alone"):
            self.atropos.say("it has the whole screen: tab leads to the other pane")
            return
        self.set_class(self.rollout.has_focus, "-reading")
        self.toggle_class("-alone")

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
            self._load_first()
        self.action_move(direction * 1_000_000)

    def action_step_to_group(self, by: int) -> None:
        self._move_in_list(by)

    # -- the rollout

    def action_step_to_rollout(self, by: int) -> None:
        self._told(self.rollout.step_to_rollout(by))

    def action_best_rollout(self) -> None:
        self._told(self.rollout.to_extreme(1))

    def action_worst_rollout(self) -> None:
        self._told(self.rollout.to_extreme(-1))

    def action_compare(self) -> None:
        self._told(self.rollout.compare())

    def action_compare_with_next(self) -> None:
        self._told(self.rollout.step_beside())

    def action_next_view(self) -> None:
        self.rollout.next_view()

    def action_facts(self) -> None:
        self.rollout.toggle_facts()

    def action_next_lens(self) -> None:
        self.rollout.next_lens()

    def action_unfold(self) -> None:
        self.rollout.toggle_reasoning()

    def action_markdown(self) -> None:
        self.rollout.toggle_markdown()

    def action_step_to_turn(self, by: int) -> None:
        self._told(self.rollout.step_to_turn(by))

    def action_step_to_hit(self, by: int) -> None:
        self._told(self.rollout.step_to_hit(by))

    def action_step_to_token(self, by: int) -> None:
        self._told(self.rollout.step_to_token(by))

    def action_least_likely_token(self) -> None:
        self._told(self.rollout.to_least_likely())

    def action_mask_edge(self) -> None:
        self._told(self.rollout.to_mask_edge())

    def action_first_difference(self) -> None:
        self._told(self.rollout.to_first_difference())

    # -- the list

    def action_next_outcome(self) -> None:
        """Through the outcomes, and after the last one to all of them again; the rest of the filter stays."""
        order = (None, *ENDED_OUTCOMES)
        outcome = order[(order.index(self.groups.outcome) + 1) % len(order)]
        others = [term.text for term in self.groups.terms if term.field != "outcome" or term.negated]
        self._apply(" ".join([*others, f"outcome:{outcome}"] if outcome else others))

    def action_sort(self) -> None:
        self.groups.next_order()
        self._load_first()

    def action_reverse(self) -> None:
        self.groups.reverse_order()
        self._load_first()

    def action_filter(self) -> None:
        self.entry.ask(self.groups.filter, for_filter=True, placeholder=_FILTER_EXAMPLE)

    @work(group="notes")
    async def action_bookmark(self) -> None:
        if (group_id := self._group_shown) is None:
            self.atropos.say("there is no group to bookmark", "warning")
            return
        bookmarked = not self.notes[group_id].bookmarked
        await self._note(lambda: self.notes.bookmark(group_id, bookmarked))

    def action_note(self) -> None:
        if (group_id := self._group_shown) is None:
            self.atropos.say("there is no group to note something of", "warning")
        else:
            self.entry.ask(self.notes[group_id].text, for_filter=False, placeholder=f"a note on group {group_id}")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.entry.asks_for_filter:
            try:
                self._apply(event.value)
            except UsageError as error:
                self.entry.refuse(str(error))
                return
        else:
            self._write_note(event.value)
        self._close_entry()

    @property
    def _group_shown(self) -> int | None:
        """The number of the group that is read, or of the one under the cursor."""
        if self.rollout.detail is not None:
            return self.rollout.detail.row.group_id
        return self.groups.selected.group_id if self.groups.selected is not None else None

    def _told(self, refusal: str) -> None:
        if refusal:
            self.atropos.say(refusal, "warning")

    def _apply(self, text: str) -> None:
        """Raises UsageError for a filter that cannot be read."""
        terms = parse_terms(text)
        self.groups.filter_by(text.strip(), terms)
        self.rollout.mark_words(search_words(terms))
        self._load_first()

    def _close_entry(self) -> None:
        """Back to where one was; after a filter, to the list that it changed."""
        self.entry.close()
        was_reading = self.has_class("-reading") and not self.entry.asks_for_filter
        (self.rollout if was_reading else self.groups).focus()

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

    # -- asking the run

    @work(group="notes")
    async def _write_note(self, text: str) -> None:
        if (group_id := self._group_shown) is not None:
            await self._note(lambda: self.notes.write(group_id, text))

    async def _note(self, change: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(change)
        except AtroposError as error:
            self.atropos.say(str(error), "error")
            return
        if self.notes.path is None:
            self.atropos.say("kept until this screen closes: the run's directory is not on this machine", "warning")
        self._show_notes()

    def _show_notes(self) -> None:
        if (group_id := self._group_shown) is not None:
            self.rollout.note = self.notes[group_id]
        self.rollout.redraw()
        self.groups.redraw()

    @work(exclusive=True, group="list")
    async def _load_first(self) -> None:
        groups = self.groups
        try:
            await asyncio.to_thread(self.notes.read)
            groups.start(await self._page(None))
        except (AtroposError, OSError) as error:
            groups.fail(str(error))
            return
        if self._wanted is not None:
            groups.select(self._wanted)
            self._wanted = None
        elif groups.selected is not None:
            self._load_group(groups.selected.group_id)
        else:
            self.rollout.close_group()

    @work(exclusive=True, group="list")
    async def _load_older(self) -> None:
        try:
            self.groups.extend(await self._page(self.groups.older_than))
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "error")

    async def _page(self, older_than: int | None) -> GroupPage:
        return await self.atropos.source.groups(older_than=older_than, limit=_PAGE, query=self.query_of_list)

    @work(exclusive=True, group="group")
    async def _load_group(self, group_id: int) -> None:
        try:
            detail = await self.atropos.source.group(group_id)
        except (AtroposError, OSError) as error:
            self.rollout.fail(str(error))
            return
        self.rollout.note = self.notes[group_id]
        self.rollout.open_group(detail)
