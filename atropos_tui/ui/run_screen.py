"""What all screens of a run share: the header, the footer, and that they draw the newest moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.recorded.timeline import Stride
from atropos_tui.ui.footer import Footer
from atropos_tui.ui.header import Header
from atropos_tui.ui.keys import Hint, Scope, bindings
from atropos_tui.ui.live_canvas import LiveCanvas
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.run_source import RecordedSource
from atropos_tui.ui.style_caches import let_go_of_lines
from atropos_tui.ui.time_slider import TimeSlider

if TYPE_CHECKING:
    from atropos_tui.ui.app import AtroposApp


class RunScreen(Screen[None]):
    """Subclasses yield their own part between header and footer."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.TIME)
    NEEDS_RUN: ClassVar[bool] = True
    SCOPES: ClassVar[Sequence[Scope]] = (Scope.EVERYWHERE,)
    FOOTER: ClassVar[Sequence[Hint]] = ()
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012 (as Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-tall")]  # noqa: RUF012 (as Textual declares it)

    # What gains or loses the focus is painted anew by itself; Textual would paint the whole screen.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    def __init__(self) -> None:
        super().__init__()
        # The moment of a recorded run that was shown last.
        self._past: tuple[float | None, int] | None = None

    @property
    def scopes(self) -> Sequence[Scope]:
        """Where the commands are from that work now."""
        return (Scope.TIME, *self.SCOPES) if self.atropos.recorded is not None else self.SCOPES

    @property
    def atropos(self) -> AtroposApp:
        from atropos_tui.ui.app import AtroposApp  # the app imports its screens

        assert isinstance(self.app, AtroposApp)
        return self.app

    def compose(self) -> ComposeResult:
        yield Header(self.atropos.run_title, read_only=self.atropos.read_only)
        yield from self.compose_middle()
        yield TimeSlider()
        yield Footer(self.FOOTER, read_only=self.atropos.read_only)

    def compose_middle(self) -> ComposeResult:
        raise NotImplementedError

    def on_unmount(self) -> None:
        let_go_of_lines(self)

    def show(self, moment: Moment) -> None:
        """Hand this moment to all that shows the run."""
        for canvas in self.query(LiveCanvas):
            canvas.show(moment)
        timeline = moment.timeline
        past = (timeline.at, moment.snapshot.seq) if timeline is not None and timeline.stands_still else None
        if past != self._past:
            self._past = past
            self.time_moved()

    def action_seek(self, share: float) -> None:
        """To a moment of a recorded run, as a share of it (0–1)."""
        if (recorded := self._recorded()) is not None:
            recorded.seek(recorded.timeline.placed(share))

    @work(group="time")
    async def action_travel(self, stride: str, by: int) -> None:
        if (recorded := self._recorded()) is None:
            return
        try:
            await recorded.move(Stride(stride), by)
        except (AtroposError, OSError) as error:
            self.atropos.say(str(error), "warning")

    def _recorded(self) -> RecordedSource | None:
        if self.atropos.recorded is None:
            self.atropos.say("this run is live: `atropos-tui open` moves through its record", "warning")
        return self.atropos.recorded

    def time_moved(self) -> None:
        """Another moment of a recorded run is shown now: load again what does not come with snapshots."""

    def back(self) -> bool:
        """Leave an inner state such as a zoomed pane; False when there is none and the screen itself may close."""
        return False
