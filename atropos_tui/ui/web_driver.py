"""The driver of a screen in a browser tab, which ends with its tab whatever happens."""

from __future__ import annotations

import os
import select
import threading

from textual import messages
from textual.drivers.web_driver import WebDriver

_SECONDS_TO_LEAVE = 5.0
_EXIT_STATUS = 70


class WatchedWebDriver(WebDriver):
    """Textual's driver, with a watchdog: a tab that is closed while the first screen is still being built can leave its
    process spinning for ever, deaf to SIGTERM."""

    @property
    def backed_up(self) -> bool:
        """Whether the browser takes less than it is sent: the pipe is full, and writing would block the event loop."""
        return not select.select([], [self.fileno], [], 0)[1]

    def run_input_thread(self) -> None:
        """Reads until the end of input, which means that the server is gone."""
        super().run_input_thread()
        self._leave_in_time()
        self._app.post_message(messages.ExitApp())

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "quit":
            self._leave_in_time()
        super().on_meta(packet_type, payload)

    def _leave_in_time(self) -> None:
        """The timer is a daemon: where the process ends by itself it never fires."""
        watchdog = threading.Timer(_SECONDS_TO_LEAVE, os._exit, (_EXIT_STATUS,))
        watchdog.daemon = True
        watchdog.start()
