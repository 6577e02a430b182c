"""What a screen of groups offers to take them away: copy a rollout, write a group, export all groups of the filter."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from textual import work
from textual.worker import Worker

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.ui import formatting
from atropos_tui.ui.clipboard import clipboard_sequence, give_to_tmux
from atropos_tui.ui.exporting import ExportFormat, GroupsExport, rollout_as_text, write_group
from atropos_tui.ui.panes.group_list import GroupListPane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.run_screen import RunScreen

_TOLD_EVERY_SECONDS = 0.5


class TakingAwayScreen(RunScreen):
    """Files go to the directory in which the screen was started."""

    groups: GroupListPane
    rollout: RolloutPane

    @property
    def query_of_list(self) -> GroupQuery:
        """The groups of the list, in its order."""
        raise NotImplementedError

    @work(group="clipboard")
    async def action_copy(self) -> None:
        rollout = self.rollout
        if not rollout.rollouts:
            self.atropos.say("there is no rollout to copy", "warning")
            return
        text = rollout_as_text(rollout.rollouts[rollout.rollout])
        if await asyncio.to_thread(give_to_tmux, text):
            self.atropos.say("copied into tmux, and sent to its terminal's clipboard; Y writes a file")
            return
        try:
            self.atropos.send_to_terminal(clipboard_sequence(text))
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

    def action_export(self, form: str) -> None:
        """Write all groups of the filter; asked for again while that goes on, stop with what there is."""
        if (running := self._running_export()) is not None:
            running.cancel()
        elif not self.groups.groups:
            self.atropos.say("there is no group to export", "warning")
        else:
            self._export(ExportFormat(form))

    def _running_export(self) -> Worker[object] | None:
        return next((w for w in self.workers if w.node is self and w.group == "export" and w.is_running), None)

    @work(group="export")
    async def _export(self, form: ExportFormat) -> None:
        export = GroupsExport(self.atropos.source, self.query_of_list, form, Path.cwd(), self.atropos.run_name)
        told_at = 0.0

        def tell(written: int, many: int) -> None:
            nonlocal told_at
            if time.monotonic() - told_at >= _TOLD_EVERY_SECONDS:
                told_at = time.monotonic()
                self._tell_progress(f"exporting {formatting.count(written)} of {formatting.count(many)}, again: stop")

        try:
            await export.write(tell)
        except asyncio.CancelledError:
            self.atropos.say(f"stopped: {_told(export)}", "warning")
            raise
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "error")
        else:
            self.atropos.say(_told(export))
        finally:
            self._tell_progress("")

    def _tell_progress(self, told: str) -> None:
        self.groups.exporting = told
        self.groups.redraw()


def _told(export: GroupsExport) -> str:
    left_out = f", {export.without_content} without contents left out" if export.without_content else ""
    return f"{formatting.plural(export.written, 'group')} written to {export.path}{left_out}"
