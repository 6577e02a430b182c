"""The dashboard: header, four panes, inference, keys; in three layouts that the style sheet chooses by width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.geometry import Region

from atropos_tui.monitor.snapshot import InFlightRow
from atropos_tui.ui.footer import Footer
from atropos_tui.ui.keys import ON_THE_DASHBOARD, Hint, Scope, bindings, hint
from atropos_tui.ui.panes.inference import InferencePane
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.panes.queue import QueuePane
from atropos_tui.ui.panes.scores import ScoresPane
from atropos_tui.ui.panes.sends import SendsPane
from atropos_tui.ui.panes.skipped import SkippedPane
from atropos_tui.ui.run_screen import RunScreen


class DashboardScreen(RunScreen):
    """Zoomed, one pane has the whole middle of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.DASHBOARD, Scope.LIST)
    SCOPES = ON_THE_DASHBOARD
    FOOTER = (
        hint("run.pause"),
        hint("run.resume"),
        hint("run.step"),
        hint("show.trajectories"),
        hint("pane.zoom"),
        hint("show.help"),
        hint("app.quit"),
        hint("show.logs"),
        hint("show.evals"),
        hint("show.alerts"),
        hint("show.fleet"),
        hint("show.config"),
        hint("app.palette"),
        hint("app.theme"),
    )
    ZOOMED_FOOTER: ClassVar[dict[str, Sequence[Hint]]] = {
        QueuePane.title: (
            hint("queue.order"),
            hint("queue.cancel"),
            hint("queue.requeue"),
            hint("run.pause_now"),
            hint("list.down", "list.up", label="move"),
            hint("show.help"),
        ),
        ScoresPane.title: (hint("scores.window"), hint("show.trajectories"), hint("show.evals"), hint("show.help")),
        SkippedPane.title: (hint("pane.open"), hint("list.down", "list.up", label="move"), hint("show.help")),
    }
    AUTO_FOCUS = "#rollout-queue"

    def compose_middle(self) -> ComposeResult:
        with Container(id="panes"):
            yield QueuePane()
            yield ScoresPane()
            yield SkippedPane()
            yield SendsPane()
        yield InferencePane()

    @property
    def zoomed(self) -> bool:
        return self.has_class("-zoomed")

    @property
    def pane(self) -> Pane | None:
        """The pane with the focus."""
        return self.focused if isinstance(self.focused, Pane) else None

    def action_focus_pane(self, number: int) -> None:
        pane = next(pane for pane in self.query(Pane) if pane.number == number)
        if self.zoomed:
            self._zoom(pane)
        self.set_focus(pane)

    def action_focus_beside(self, columns: int) -> None:
        """The nearest pane to the left (-1) or right (1) of the one with the focus."""
        here = self.pane
        if here is None or self.zoomed:
            return
        x, y = here.region.center
        beside = [pane for pane in self.query(Pane) if _lies_beside(pane.region, here.region, columns)]
        if beside:
            nearest = min(beside, key=lambda pane: abs(pane.region.center[0] - x) + abs(pane.region.center[1] - y))
            self.set_focus(nearest)

    def zoom_pane(self, number: int) -> None:
        """This pane on the whole screen, with the focus."""
        pane = next(pane for pane in self.query(Pane) if pane.number == number)
        self._zoom(pane)
        self.set_focus(pane)

    def action_zoom(self) -> None:
        if self.zoomed:
            self._unzoom()
        elif self.pane is not None:
            self._zoom(self.pane)

    def action_next_window(self) -> None:
        self.query_one(ScoresPane).next_window()

    def action_next_order(self) -> None:
        self.query_one(QueuePane).next_order()

    def action_cancel_group(self) -> None:
        self._with_group(self.atropos.ask_to_cancel)

    def action_requeue_group(self) -> None:
        self._with_group(self.atropos.ask_to_requeue)

    def _with_group(self, ask: Callable[[InFlightRow], None]) -> None:
        row = self.query_one(QueuePane).group
        if row is None:
            self.atropos.say("no group is in flight", "warning")
        else:
            ask(row)

    def action_open(self) -> None:
        pane = self.pane
        if pane is None:
            return
        if pane.group_id is not None:
            self.atropos.show_group(pane.group_id)
        else:
            self.action_zoom()

    def back(self) -> bool:
        if not self.zoomed:
            return False
        self._unzoom()
        return True

    def action_move(self, by: int) -> None:
        if self.pane is not None:
            self.pane.move_cursor(by)

    def action_move_page(self, pages: int) -> None:
        if self.pane is not None:
            self.pane.move_cursor(pages * max(1, self.pane.size.height - 6))

    def action_move_to_end(self, direction: int) -> None:
        if self.pane is not None:
            self.pane.move_cursor(direction * self.pane.rows)

    def _zoom(self, pane: Pane) -> None:
        for other in self.query(Pane):
            other.zoom(other is pane)
        self.set_class(True, "-zoomed")
        self.set_class(isinstance(pane, InferencePane), "-inference")
        self.query_one(Footer).show_hints((hint("app.back"), *self.ZOOMED_FOOTER.get(pane.title, self.FOOTER)))

    def _unzoom(self) -> None:
        self.remove_class("-zoomed", "-inference")
        self.query_one(Footer).show_hints(self.FOOTER)
        for pane in self.query(Pane):
            pane.zoom(False)


def _lies_beside(region: Region, here: Region, columns: int) -> bool:
    return region.x >= here.right if columns > 0 else region.right <= here.x
