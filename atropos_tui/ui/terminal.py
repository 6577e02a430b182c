"""Manners towards the terminal: it may hang up, be slow, send old mouse reports or sit inside tmux."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from atropos_tui.terminal_size import terminal_size
from atropos_tui.ui.terminal_output import TerminalOutput

_X10_REPORT = b"\x1b[M"
_X10_LENGTH = 6
_MOST_WAITING_WRITES = 3
_SECONDS_TO_LEAVE = 2.0


def inside_multiplexer() -> bool:
    """tmux and screen lose the modern mouse encoding when they attach again, so there the mouse stays off."""
    return bool(os.environ.get("TMUX") or os.environ.get("STY"))


class GuardedDriver(LinuxDriver):
    """Textual's driver, except that undecodable input does not crash it, a terminal that is gone ends the app, one that
    is frozen does not keep it from ending, the terminal alone says how large it is, and being stopped by SIGSTOP harms
    nothing.

    Textual by itself reads from a terminal that hung up for ever, with a whole core, and blocks in writing to it; where
    the environment has COLUMNS and LINES, it draws in that size whatever the window's is; and after each SIGSTOP it has
    one more thread that reads keys, and one more that writes pictures into those of the others.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        assert self._file is not None
        self._output = TerminalOutput(self._file)
        self._file = self._output  # type: ignore[assignment]  # the part of a file that the writer uses
        self._size = self._size or self._get_terminal_size()  # of the first picture
        self._is_ending = False
        self._is_coming_back = False
        self._has_dropped = False

    def start_application_mode(self) -> None:
        self._is_ending = False
        self._output.begin()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        self._is_ending = True
        self._output.end_within(_SECONDS_TO_LEAVE)
        super().stop_application_mode()

    def _sigcont_application(self, *arguments: Any) -> None:
        """SIGSTOP came without a word unless Textual says that it must tell of the end of a suspension."""
        if self._must_signal_resume:
            super()._sigcont_application(*arguments)
        elif self._auto_restart:
            self._loop.call_soon_threadsafe(self._start_anew)

    def _start_anew(self) -> None:
        """Take the terminal again, which somebody else has had meanwhile, such as a shell."""
        if self._is_ending or self._writer_thread is None:
            return
        settings = self.attrs_before
        self._is_coming_back = True
        self.suspend_application_mode()
        self.resume_application_mode()
        self._is_coming_back = False
        self.attrs_before = settings

    def disable_input(self) -> None:
        """As Textual's, which throws away what was typed and not read yet; where reading goes on, it is kept."""
        if self._is_coming_back and self._key_thread is not None:
            self.exit_event.set()
            self._key_thread.join()
            self.exit_event.clear()
        else:
            super().disable_input()

    def write(self, data: str) -> None:
        """As Textual's, which lets the event loop wait once the terminal is far behind; here this is left out then."""
        assert self._writer_thread is not None
        if self._writer_thread._queue.full() and not self._is_ending:
            self._has_dropped = True
        else:
            super().write(data)

    def take_dropped(self) -> bool:
        """Whether something was left out since this was last asked, so that all has to be painted anew."""
        dropped, self._has_dropped = self._has_dropped, False
        return dropped

    @property
    def backed_up(self) -> bool:
        """Whether the terminal takes less than it is sent. Writing on would in the end block the event loop."""
        return self._writer_thread is not None and self._writer_thread._queue.qsize() > _MOST_WAITING_WRITES

    def _get_terminal_size(self) -> tuple[int, int]:
        return terminal_size() or super()._get_terminal_size()

    def take_mouse(self, ours: bool) -> None:
        """Ask the terminal to report the mouse, or to stop and use it for selecting text."""
        if ours:
            self._mouse = True
            self._enable_mouse_support()
            if self._mouse_pixels:  # what was just sent turned back to cells, and the parser would read them as pixels
                self._enable_mouse_pixels()
        else:
            self._disable_mouse_support()
            self._mouse = False

    def run_input_thread(self) -> None:
        """Read until asked to stop or until the terminal is gone, which ends the app."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        without_mouse_reports = x10_filter()
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(0.1):
                    data = self._read()
                    if not data:
                        self._loop.call_soon_threadsafe(self._app.exit)
                        return
                    text = decode(without_mouse_reports(data))
                    for message in parser.feed(text) if text else ():  # to the parser, no text means the end
                        self.process_message(message)
                for message in parser.tick():
                    self.process_message(message)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, 4096)
        except OSError:  # a pseudo terminal answers EIO once its other side is closed
            return b""


def x10_filter() -> Callable[[bytes], bytes]:
    """A function that removes mouse reports of the oldest kind from a stream of bytes; they are no valid UTF-8.

    A report may be cut anywhere after its introducer. An introducer that is cut is not waited for: the escape key
    must not wait.
    """
    held = b""

    def remove_reports(data: bytes) -> bytes:
        nonlocal held
        data, held = held + data, b""
        while (start := data.find(_X10_REPORT)) >= 0:
            if len(data) < start + _X10_LENGTH:
                held = data[start:]
                return data[:start]
            data = data[:start] + data[start + _X10_LENGTH :]
        return data

    return remove_reports
