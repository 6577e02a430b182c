"""What all panes share: a frame with title and numbers, the moment to draw, and a cursor where there are rows."""

from __future__ import annotations

from collections.abc import Hashable

from textual import events

from atropos_tui.ui.ink import Ink, Line, dim, faint, strong
from atropos_tui.ui.live_canvas import LiveCanvas
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.frame import FRAME_HEIGHT, FRAME_WIDTH, framed
from atropos_tui.ui.wrapping import wrapped


class Pane(LiveCanvas, can_focus=True):
    """Subclasses name themselves and draw `numbers` and `body`; `rows` is how far the cursor may go.

    `number` is the key that leads to the pane, 0 where it is the only one.
    """

    number: int = 0
    title: str

    def __init__(self) -> None:
        super().__init__(id=self.title.lower().replace(" ", "-"))
        self.cursor = 0

    def show(self, moment: Moment) -> None:
        """Draw this moment, with the cursor on the row where it was."""
        key = self.row_key(self.cursor) if 0 < self.cursor < self.rows else None
        self.moment = moment
        if key is not None:
            self.cursor = next((i for i in range(self.rows) if self.row_key(i) == key), self.cursor)
        self.cursor = max(0, min(self.cursor, self.rows - 1))
        super().show(moment)

    @property
    def rows(self) -> int:
        """How many rows the cursor can stand on."""
        return 0

    def row_key(self, index: int) -> Hashable:
        """What the cursor stays on when rows come and go above it; None: on its line. On the first line it stays."""
        del index
        return None

    @property
    def shown_cursor(self) -> int:
        """The row of the cursor while the pane has the focus, else -1."""
        return self.cursor if self.has_focus and self.rows else -1

    @property
    def zoomed(self) -> bool:
        """Whether it has the whole screen, and room for detail."""
        return self.has_class("-zoomed")

    def zoom(self, zoomed: bool) -> None:
        """Take the whole screen, or the place among the others."""
        if zoomed != self.zoomed:
            self.set_class(zoomed, "-zoomed")
            self.redraw_all()

    @property
    def group_id(self) -> int | None:
        """The ended group under the cursor."""
        return None

    def numbers(self, room: int) -> Line:
        """What stands at the right of the title, in at most `room` cells."""
        del room
        return Line()

    def body(self, width: int, height: int) -> list[Line]:
        """What stands inside of the frame."""
        raise NotImplementedError

    def reason_for_waiting(self, width: int) -> list[Line]:
        """Below the line of an empty state: what the run as a whole waits for."""
        return [Line(faint(f"  {part}")) for part in wrapped(visible(self.moment.waits_for), width - 2) if part]

    def draw(self, width: int, height: int) -> list[Line]:
        body = self.body(width - FRAME_WIDTH, height - FRAME_HEIGHT) if self.moment.known else []
        number = dim(f"{self.number} ") if self.number else ""
        title = Line(number, strong(self.title, Ink.ACCENT if self.has_focus else Ink.TEXT))
        numbers = self.numbers(width - title.width - 8)
        return framed(body, width, height, title=title, numbers=numbers, focused=self.has_focus)

    def move_cursor(self, by: int) -> None:
        self.cursor = max(0, min(self.cursor + by, self.rows - 1))
        self.redraw()

    def watch_has_focus(self, has_focus: bool) -> None:
        """The frame shows it."""
        super().watch_has_focus(has_focus)
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        del event
        self.focus()
