"""The application: it follows one run and hands each newest snapshot to the screen in front. It knows no more.

Screens other than the first are imported in functions, so that the first appears sooner, and loaded after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from rich.console import RenderableType
from rich.text import Text
from textual import events, work
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.screen import Screen

from atropos_tui import garbage_collection
from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import ENDED_STATES
from atropos_tui.monitor.new_alerts import NewAlerts, worth_telling
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.commanding import Asked, CommandingApp
from atropos_tui.ui.connection import Lost, follow
from atropos_tui.ui.crash import write_crash_file
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.glyphs import wants_ascii
from atropos_tui.ui.header import Header
from atropos_tui.ui.keys import Command, Scope, bindings, commands, named, shown
from atropos_tui.ui.leaving import DETACH, Answer, QuitChoice
from atropos_tui.ui.loading import load_screens
from atropos_tui.ui.looks import Looks
from atropos_tui.ui.moment import Contact, Moment
from atropos_tui.ui.painting import ShownPicture
from atropos_tui.ui.run_screen import RunScreen
from atropos_tui.ui.run_source import NoRun, RecordedSource, RestartableSource, RunSource
from atropos_tui.ui.style_caches import let_go_of_closed_screens
from atropos_tui.ui.terminal import GuardedDriver, inside_multiplexer
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.themes import DEFAULT_THEME, PLAIN_THEME, Theme
from atropos_tui.ui.user_files import UserFiles

if TYPE_CHECKING:
    from atropos_tui.monitor.fleet import Fleet, FleetRun

DEFAULT_RATE = 2.0
# So long after a key its effect is painted, and the next one comes later still.
QUIET_SECONDS = 0.04
OpenRun: TypeAlias = "Callable[[FleetRun], RunSource]"


class AtroposApp(CommandingApp):
    """Returns what the user answered when asked what becomes of the run; None when a signal or hang-up ended it.

    Without a source it begins with the list of `fleet`, whose runs `open_run` opens. `first` is a snapshot that is
    known already, so that the first picture has numbers. `clock` gives monotonic seconds, `wall_clock` Unix seconds.
    `mouse` None means: yes, except inside tmux and screen. An empty `theme` means: the one that fits the terminal;
    `ascii_only` None: if the locale is not of UTF-8. Raises UsageError for an unknown theme.
    """

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "atropos"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.RUN, Scope.EVERYWHERE)

    def __init__(
        self,
        source: RunSource | None,
        *,
        title: str = "",
        fleet: Fleet | None = None,
        open_run: OpenRun | None = None,
        read_only: bool = False,
        on_quit: tuple[QuitChoice, ...] = (DETACH,),
        first: RunSnapshot | None = None,
        theme: str = "",
        user_files: UserFiles | None = None,
        mouse: bool | None = None,
        rate: float = DEFAULT_RATE,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        ascii_only: bool | None = None,
    ) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.run_title = title
        self.read_only = read_only
        self._mouse_wanted = not inside_multiplexer() if mouse is None else mouse
        self.source: RunSource = source or NoRun()
        self._home = self.source
        self._home_name = title
        self.fleet = fleet
        self._open_run = open_run
        self._on_quit = on_quit
        self._mouse_is_ours = self._mouse_wanted
        self._rate = rate
        self._clock = clock
        self.wall_clock = wall_clock
        self._snapshot = first or RunSnapshot()
        self._arrived_at = clock()
        self._lost: Lost | None = None
        self._asked: Asked | None = None
        self._paint_is_due = False
        self._input_at = clock()
        self._shown = ShownPicture()
        self._user_files = user_files or UserFiles()
        self._ascii = wants_ascii(ascii_only, self._user_files.screen.ascii_only)
        self._new_alerts = NewAlerts()
        self._looks = Looks(self._user_files.themes)
        if theme and theme not in self._looks.names:
            raise UsageError(f"there is no theme {theme!r}", f"the themes are {', '.join(self._looks.names)}")
        self._wear(theme or self._fitting_theme())

    @property
    def look(self) -> Theme:
        """The theme in use. Without colours only the terminal's own tells by bold, dim and reverse what is what."""
        return self._looks[PLAIN_THEME if self.no_color else self.theme]

    @property
    def moment(self) -> Moment:
        """What is to be drawn now. The worker's clock goes on between snapshots, and stands still after the end."""
        run = self._snapshot.run
        now = self._snapshot.taken_at
        timeline = self.recorded.timeline if self.recorded is not None else None
        stands_still = run.state in ENDED_STATES or (timeline is not None and timeline.stands_still)
        if now and not stands_still:
            now += self._clock() - self._arrived_at
        contact = Contact.CONNECTED if self._snapshot.taken_at else Contact.CONNECTING
        lost = self._lost or Lost("", 0.0)
        return Moment(
            snapshot=self._snapshot,
            now=now,
            contact=Contact.DISCONNECTED if self._lost else contact,
            lost_because=lost.because,
            retry_in=lost.retry_in,
            asked=self._asked.word if self._asked else "",
            timeline=timeline,
        )

    @property
    def recorded(self) -> RecordedSource | None:
        """The run, where it is a recorded one that can be moved through."""
        return self.source if isinstance(self.source, RecordedSource) else None

    def _fitting_theme(self) -> str:
        """The terminal's own colours where there are at most sixteen of them, or none are wanted."""
        few = self.console.color_system in (None, "standard", "windows")
        return PLAIN_THEME if few or self.no_color else DEFAULT_THEME

    async def run_async(self, *, mouse: bool = True, **options: Any) -> Answer | None:
        """As Textual's, but the mouse is on only where it is wanted and can be."""
        return await super().run_async(mouse=mouse and self._mouse_wanted, **options)

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        if chosen.__name__ == "WebDriver":
            from atropos_tui.ui.web_driver import WatchedWebDriver

            return WatchedWebDriver
        return GuardedDriver if chosen is LinuxDriver else chosen

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, self._ascii] if self._ascii is not None else filters

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self._shown.narrowed(renderable))

    def _fatal_error(self) -> None:
        """Instead of Textual's page of local variables, which are whole rollouts here."""
        assert self._exception is not None
        self._exit_renderables.append(Text(write_crash_file(self._exception)))
        self._close_messages_no_wait()

    def get_default_screen(self) -> DashboardScreen:
        return DashboardScreen()

    def on_resize(self, event: events.Resize) -> None:
        """The terminal may have lost what it showed, even where it has its old size again before anyone looks."""
        self._shown.forget()
        if self.screen_stack and event.size == self.screen.size:
            self.screen.refresh()

    def action_repaint(self) -> None:
        self._shown.forget()
        self.screen.refresh()

    def on_mount(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.set_keymap(self._user_files.keymap)
        self.set_interval(1.0, self._paint)
        self.set_interval(1.0, self._collect_when_quiet)
        self.call_after_refresh(self._load_screens)
        self.screen_change_signal.subscribe(self, let_go_of_closed_screens)
        if self._snapshot.taken_at:
            self.call_after_refresh(self._watch_run)  # what is known already is drawn first
        else:
            self._watch_run()
        if self._user_files.directory is not None:
            self._watch_themes(self._user_files.directory)
        if isinstance(self.source, NoRun):
            self.action_fleet()

    def watch_fleet_run(self, run: FleetRun) -> None:
        """Show this run from now on, from its dashboard. Raises AtroposError when it cannot be opened."""
        assert self._open_run is not None
        self._switch_to(self._open_run(run), run.name)

    def _switch_to(self, source: RunSource, title: str) -> None:
        before = self.source
        self.source, self.run_title = source, title
        self._snapshot, self._lost, self._asked = RunSnapshot(), None, None
        self._new_alerts = NewAlerts()
        self._watch_run()
        if before is not self._home:
            self._close(before)
        self._open(None)
        self.screen.query_one(Header).title = title
        self._paint()

    def _go_on_with(self, before: RestartableSource, source: RunSource) -> None:
        if source is before is self.source:
            self._watch_run()
        elif before is self.source:
            self._switch_to(source, self.run_title)
        elif source is not before:
            self._close(source)  # another run was opened meanwhile

    async def close_opened(self) -> None:
        """Close the run that was opened from the fleet, if one is; the one given at the start is its owner's."""
        if self.source is not self._home:
            await self.source.close()

    @work
    async def _close(self, source: RunSource) -> None:
        await source.close()

    @work(group="watch", exclusive=True)
    async def _watch_run(self) -> None:
        async for news in follow(self.source, self._rate):
            if isinstance(news, Lost):
                self._lost = news
            else:
                self._lost, self._snapshot, self._arrived_at = None, news, self._clock()
                if self._new_alerts.among(worth_telling(news.run)) and self._user_files.bell:
                    self.bell()
                if self._asked and news.run.state in self._asked.until:
                    self._asked = None
            self._paint_soon()

    @work(group="loading")
    async def _load_screens(self) -> None:
        await load_screens()

    @work(group="themes")
    async def _watch_themes(self, directory: Path) -> None:
        from atropos_tui.ui.theme_watch import LOOK_SECONDS, ThemeWatch

        themes = await asyncio.to_thread(ThemeWatch, directory)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for theme in await asyncio.to_thread(themes.changed):
                if isinstance(theme, Theme):
                    self._use_theme(theme)
                else:
                    self.say(f"{theme}; the colours stay as they were", "error")

    def _use_theme(self, theme: Theme) -> None:
        """Take a theme in; if it is the one in use, everything is painted anew."""
        self._looks.take_in(theme)
        if theme.name == self.theme:
            self.register_theme(theme.as_textual())
            self.mutate_reactive(AtroposApp.theme)

    def _wear(self, name: str) -> None:
        self.register_theme(self._looks[name].as_textual())
        self.theme = name

    def refresh_css(self, animate: bool = True) -> None:
        """Where nothing is styled yet, the theme's colours are enough: the style sheets are parsed once, with them."""
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent):
            self._input_at = self._clock()
            asyncio.get_running_loop().call_later(QUIET_SECONDS, self._collect_when_quiet)
        await super().on_event(event)

    def _collect_when_quiet(self) -> None:
        if self._clock() - self._input_at >= QUIET_SECONDS:
            garbage_collection.collect_if_due()

    def _paint_soon(self) -> None:
        """However many snapshots arrive before the next paint, only the newest is drawn."""
        if not self._paint_is_due:
            self._paint_is_due = True
            self.call_later(self._paint)

    def _paint(self) -> None:
        self._paint_is_due = False
        if getattr(self._driver, "backed_up", False):
            return  # the terminal is slower than the run; the next tick paints what is newest then
        if isinstance(self._driver, GuardedDriver) and self._driver.take_dropped():
            self.action_repaint()
        moment = self.moment
        for screen in self._visible_screens:
            if isinstance(screen, RunScreen):
                screen.show(moment)

    @property
    def _visible_screens(self) -> Iterable[Screen[Any]]:
        """The one in front, and while that is a dialog also what lies behind it."""
        for screen in reversed(self.screen_stack):
            yield screen
            if not screen.is_modal:
                break

    def action_trajectories(self) -> None:
        self.show_group(None)

    def show_group(self, group_id: int | None) -> None:
        """Open the trajectories, at this group if one is named."""
        from atropos_tui.ui.trajectories import TrajectoriesScreen

        self._open(TrajectoriesScreen(group_id))

    def show_pane(self, number: int) -> None:
        """A pane of the dashboard on the whole screen."""
        self._open(None)
        dashboard = self.screen
        assert isinstance(dashboard, DashboardScreen)
        dashboard.zoom_pane(number)

    def action_logs(self) -> None:
        from atropos_tui.ui.logs import LogsScreen

        self._open(LogsScreen())

    def action_evals(self) -> None:
        from atropos_tui.ui.evals import EvalsScreen

        self._open(EvalsScreen())

    def action_alerts(self) -> None:
        from atropos_tui.ui.alerts import AlertsScreen

        self._open(AlertsScreen())

    def action_config(self) -> None:
        from atropos_tui.ui.config import ConfigScreen

        self._open(ConfigScreen())

    def action_fleet(self) -> None:
        from atropos_tui.ui.fleet import FleetScreen

        if self.fleet is None:
            self.say("there are no other runs to show here", "warning")
        else:
            self._open(FleetScreen(self.fleet))

    def action_toggle_mouse(self) -> None:
        """While the terminal has the mouse, it can select and copy text as it is used to."""
        self._mouse_is_ours = not self._mouse_is_ours
        if isinstance(self._driver, GuardedDriver):
            self._driver.take_mouse(self._mouse_is_ours)
        who = "the screen has the mouse" if self._mouse_is_ours else "the terminal has the mouse, to select text"
        self.say(f"{who}; {self.keys_of(named('app.mouse'))} changes it")

    def action_help(self) -> None:
        from atropos_tui.ui.help import HelpScreen

        if isinstance(self.screen, RunScreen):
            self.push_screen(HelpScreen(self.screen.scopes))

    def action_next_theme(self) -> None:
        names = self._looks.names
        self._wear(names[(names.index(self.theme) + 1) % len(names)])

    async def action_back(self) -> None:
        screen = self.screen
        if not isinstance(screen, RunScreen) or screen.back():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self._paint()
        elif isinstance(self._home, NoRun):
            self.action_fleet()
        elif self.source is not self._home:
            self._switch_to(self._home, self._home_name)

    def action_ask_quit(self) -> None:
        from atropos_tui.ui.quit import QuitScreen

        if isinstance(self.screen, QuitScreen):
            return
        choices = self._on_quit
        if self.source is self._home:
            name = self.run_name
        else:
            # The answer is about the run that the screen was started with; ending it takes being there.
            name = self._home_name or "the fleet"
            choices = tuple(choice for choice in choices if choice.answer == "detach") or choices
        self.push_screen(QuitScreen(visible(name), choices), self._leave)

    @property
    def run_name(self) -> str:
        """What to call the run that is watched."""
        return visible(self._snapshot.run.environment or self.run_title or "the run")

    def keys_of(self, command: Command) -> str:
        """The keys of a command as people write them, the user's own included."""
        keys = self._user_files.keymap.get(command.id, command.keys)
        return shown(keys, ascii_only=self._ascii is not None)

    def send_to_terminal(self, sequence: str) -> None:
        """An escape sequence that draws nothing."""
        if self._driver is not None:
            self._driver.write(sequence)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette lists what the key table has for this screen."""
        scopes = screen.scopes if isinstance(screen, RunScreen) else (Scope.EVERYWHERE,)
        for command in commands(scopes):
            run = partial(self.run_action, command.action, default_namespace=screen)
            yield SystemCommand(f"{command.label}  ({self.keys_of(command)})", command.help, run)

    def _open(self, screen: RunScreen | None) -> None:
        """Screens lie on the dashboard, never on each other, so that escape always leads back to it; None is itself."""
        if screen is not None and screen.NEEDS_RUN and isinstance(self.source, NoRun):
            self.say("no run is open: choose one here with enter", "warning")
            return
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if screen is not None:
            self.push_screen(screen)
        else:
            self._paint()

    def _leave(self, answer: Answer | None) -> None:
        if answer is not None:
            self.exit(answer)
