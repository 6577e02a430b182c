"""The application: it follows one run and hands each newest snapshot to the screen in front. It knows no more.

Screens other than the first are imported when they are opened, so that the first appears sooner.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual import work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.notifications import SeverityLevel
from textual.screen import Screen

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.connection import Lost, follow
from atropos_tui.ui.crash import write_crash_file
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.keys import Command, Scope, bindings, commands, shown
from atropos_tui.ui.moment import Contact, Moment
from atropos_tui.ui.painting import narrowed
from atropos_tui.ui.quit import DETACH, Answer, QuitChoice, QuitScreen
from atropos_tui.ui.run_screen import RunScreen
from atropos_tui.ui.run_source import RunSource
from atropos_tui.ui.terminal import GuardedDriver, inside_multiplexer
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.themes import DEFAULT_THEME, PLAIN_THEME, Theme, shipped_themes
from atropos_tui.ui.user_files import UserFiles

DEFAULT_RATE = 2.0
_HALTED = frozenset({RunState.PAUSING, RunState.PAUSED})


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that was sent; `word` shows in the header until a snapshot has one of the states."""

    word: str
    until: frozenset[RunState]


class AtroposApp(App[Answer]):
    """Returns what the user answered when asked what becomes of the run; None when a signal or hang-up ended it.

    `clock` gives monotonic seconds. `mouse` None means: yes, except inside tmux and screen. An empty `theme` means: the
    one that fits the terminal. Raises UsageError for an unknown theme.
    """

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "atropos"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.RUN, Scope.EVERYWHERE)

    def __init__(
        self,
        source: RunSource,
        *,
        title: str = "",
        read_only: bool = False,
        on_quit: tuple[QuitChoice, ...] = (DETACH,),
        theme: str = "",
        user_files: UserFiles | None = None,
        mouse: bool | None = None,
        rate: float = DEFAULT_RATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.run_title = title
        self.read_only = read_only
        self._mouse_wanted = not inside_multiplexer() if mouse is None else mouse
        self.source = source
        self._on_quit = on_quit
        self._rate = rate
        self._clock = clock
        self._snapshot = RunSnapshot()
        self._arrived_at = clock()
        self._lost: Lost | None = None
        self._asked: Asked | None = None
        self._paint_is_due = False
        self._user_files = user_files or UserFiles()
        self._looks = shipped_themes() | {look.name: look for look in self._user_files.themes}
        for look in self._looks.values():
            self.register_theme(look.as_textual())
        if theme and theme not in self._looks:
            raise UsageError(f"there is no theme {theme!r}", f"the themes are {', '.join(self._looks)}")
        self.theme = theme or self._fitting_theme()

    @property
    def look(self) -> Theme:
        """The theme in use."""
        return self._looks.get(self.theme) or self._looks[DEFAULT_THEME]

    @property
    def moment(self) -> Moment:
        """What is to be drawn now. The worker's clock goes on between snapshots, and stands still after the end."""
        run = self._snapshot.run
        now = self._snapshot.taken_at
        if run.state not in ENDED_STATES and now:
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
        )

    def _fitting_theme(self) -> str:
        """The terminal's own colours where there are at most sixteen of them, or none are wanted."""
        few = self.console.color_system in (None, "standard", "windows")
        return PLAIN_THEME if few or self.no_color else DEFAULT_THEME

    async def run_async(self, *, mouse: bool = True, **options: Any) -> Answer | None:
        """As Textual's, but the mouse is on only where it is wanted and can be."""
        return await super().run_async(mouse=mouse and self._mouse_wanted, **options)

    def get_driver_class(self) -> type[Driver]:
        chosen = super().get_driver_class()
        return GuardedDriver if chosen is LinuxDriver else chosen

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, narrowed(renderable))

    def _fatal_error(self) -> None:
        """Instead of Textual's page of local variables, which are whole rollouts here."""
        assert self._exception is not None
        self._exit_renderables.append(Text(write_crash_file(self._exception)))
        self._close_messages_no_wait()

    def get_default_screen(self) -> DashboardScreen:
        return DashboardScreen()

    def on_mount(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.set_keymap(self._user_files.keymap)
        self.set_interval(1.0, self._paint)
        self._watch_run()

    @work
    async def _watch_run(self) -> None:
        async for news in follow(self.source, self._rate):
            if isinstance(news, Lost):
                self._lost = news
            else:
                self._lost, self._snapshot, self._arrived_at = None, news, self._clock()
                if self._asked and news.run.state in self._asked.until:
                    self._asked = None
            self._paint_soon()

    def _paint_soon(self) -> None:
        """However many snapshots arrive before the next paint, only the newest is drawn."""
        if not self._paint_is_due:
            self._paint_is_due = True
            self.call_later(self._paint)

    def _paint(self) -> None:
        self._paint_is_due = False
        if isinstance(self._driver, GuardedDriver) and self._driver.backed_up:
            return  # the terminal is slower than the run; the next tick paints what is newest then
        moment = self.moment
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen) and (screen.is_current or screen is self._behind_dialog):
                screen.show(moment)

    @property
    def _behind_dialog(self) -> object:
        """The screen that shows through while a dialog is open."""
        stack = self.screen_stack
        return stack[-2] if len(stack) > 1 and stack[-1].is_modal else None

    def action_pause(self) -> None:
        refusal = "it is paused already" if self._halted else ""
        self._command(self.source.pause, refusal, Asked("pausing", _HALTED | ENDED_STATES))

    def action_resume(self) -> None:
        refusal = "" if self._halted else "it is not paused"
        self._command(self.source.resume, refusal, Asked("resuming", frozenset(RunState) - _HALTED))

    def action_step_group(self) -> None:
        refusal = "" if self._halted else "a single group can be started while the run is paused: p first"
        self._command(self.source.step_group, refusal, None)

    def action_trajectories(self) -> None:
        self.show_group(None)

    def show_group(self, group_id: int | None) -> None:
        """Open the trajectories, at this group if one is named."""
        from atropos_tui.ui.trajectories import TrajectoriesScreen

        self._open(TrajectoriesScreen(group_id))

    def action_logs(self) -> None:
        from atropos_tui.ui.logs import LogsScreen

        self._open(LogsScreen())

    def action_evals(self) -> None:
        from atropos_tui.ui.evals import EvalsScreen

        self._open(EvalsScreen())

    def action_alerts(self) -> None:
        from atropos_tui.ui.alerts import AlertsScreen

        self._open(AlertsScreen())

    def action_help(self) -> None:
        from atropos_tui.ui.help import HelpScreen

        if isinstance(self.screen, RunScreen):
            self.push_screen(HelpScreen(self.screen.SCOPES))

    def action_next_theme(self) -> None:
        names = list(self._looks)
        self.theme = names[(names.index(self.look.name) + 1) % len(names)]

    async def action_back(self) -> None:
        screen = self.screen
        if isinstance(screen, RunScreen) and not screen.back() and len(self.screen_stack) > 1:
            self.pop_screen()

    def action_ask_quit(self) -> None:
        if isinstance(self.screen, QuitScreen):
            return
        name = visible(self._snapshot.run.environment or self.run_title or "the run")
        self.push_screen(QuitScreen(name, self._on_quit), self._leave)

    def keys_of(self, command: Command) -> str:
        """The keys of a command as people write them, the user's own included."""
        return shown(self._user_files.keymap.get(command.id, command.keys))

    def send_to_terminal(self, sequence: str) -> None:
        """An escape sequence that draws nothing."""
        if self._driver is not None:
            self._driver.write(sequence)

    def say(self, text: str, severity: SeverityLevel = "information") -> None:
        """A short note at the bottom right. Its text is never read as markup."""
        self.notify(visible(text), severity=severity, timeout=4, markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette lists what the key table has for this screen."""
        scopes = screen.SCOPES if isinstance(screen, RunScreen) else (Scope.EVERYWHERE,)
        for command in commands(scopes):
            run = partial(self.run_action, command.action, default_namespace=screen)
            yield SystemCommand(f"{command.label}  ({self.keys_of(command)})", command.help, run)

    @property
    def _halted(self) -> bool:
        return self._snapshot.run.state in _HALTED

    def _open(self, screen: RunScreen) -> None:
        """Screens lie on the dashboard, never on each other, so that escape always leads back to it."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(screen)

    def _leave(self, answer: Answer | None) -> None:
        if answer is not None:
            self.exit(answer)

    def _command(self, send: Callable[[], Awaitable[None]], refusal: str, asked: Asked | None) -> None:
        """Send a command, or say why it cannot be sent now."""
        refusal = self._why_disarmed() or refusal
        if refusal:
            self.say(refusal, "warning")
        else:
            self._send(send, asked)

    def _why_disarmed(self) -> str:
        if self.read_only:
            return "read-only: this screen cannot change the run"
        if self._lost is not None or not self._snapshot.taken_at:
            return "there is no connection to the run"
        if self._snapshot.run.state in ENDED_STATES:
            return "the run has ended"
        return ""

    @work(group="commands")
    async def _send(self, send: Callable[[], Awaitable[None]], asked: Asked | None) -> None:
        self._asked = asked
        self._paint()
        try:
            await send()
        except (AtroposError, OSError) as error:
            self._asked = None
            self._paint()
            self.say(str(error), "error")
