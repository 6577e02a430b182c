"""What all screens of a run share: the header, the footer, and that they draw the newest moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.screen import Screen

from atropos_tui.ui.footer import Footer
from atropos_tui.ui.header import Header
from atropos_tui.ui.keys import Hint, Scope
from atropos_tui.ui.live_canvas import LiveCanvas
from atropos_tui.ui.moment import Moment

if TYPE_CHECKING:
    from atropos_tui.ui.app import AtroposApp


class RunScreen(Screen[None]):
    """Subclasses yield their own part between header and footer."""

    SCOPES: ClassVar[Sequence[Scope]] = (Scope.EVERYWHERE,)
    FOOTER: ClassVar[Sequence[Hint]] = ()
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 (as Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012 (as Textual declares it)

    @property
    def atropos(self) -> AtroposApp:
        from atropos_tui.ui.app import AtroposApp  # the app imports its screens

        assert isinstance(self.app, AtroposApp)
        return self.app

    def compose(self) -> ComposeResult:
        yield Header(self.atropos.run_title, read_only=self.atropos.read_only)
        yield from self.compose_middle()
        yield Footer(self.FOOTER, read_only=self.atropos.read_only)

    def compose_middle(self) -> ComposeResult:
        raise NotImplementedError

    def show(self, moment: Moment) -> None:
        """Hand this moment to all that shows the run."""
        for canvas in self.query(LiveCanvas):
            canvas.show(moment)

    def back(self) -> bool:
        """Leave an inner state such as a zoomed pane; False when there is none and the screen itself may close."""
        return False
