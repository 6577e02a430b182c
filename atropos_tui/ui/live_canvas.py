"""A canvas that shows the run: it draws the newest moment."""

from __future__ import annotations

from atropos_tui.ui.moment import Moment
from atropos_tui.ui.widgets.canvas import Canvas


class LiveCanvas(Canvas):
    """The app hands it each new moment; when it comes onto the screen, it fetches the first itself."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id)
        self.moment = Moment()

    def on_mount(self) -> None:
        self.show(self.atropos.moment)

    def show(self, moment: Moment) -> None:
        """Draw this moment; what did not change costs nothing."""
        self.moment = moment
        self.redraw()
