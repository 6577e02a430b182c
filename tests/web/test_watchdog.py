"""A tab's process that cannot end by itself is ended."""

from __future__ import annotations

import json
import subprocess
import sys

# An application whose event loop is taken for ever, deaf to signals and to the message that would end it.
STUCK = """
from textual.app import App
from atropos_tui.ui.web_driver import WatchedWebDriver


class Stuck(App):
    def on_mount(self):
        while True:
            pass


Stuck(driver_class=WatchedWebDriver).run()
"""
PATIENCE = 60.0


def start() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"__GANGLION__\n"
    return process


def test_a_stuck_screen_ends_after_its_tab_was_closed() -> None:
    message = json.dumps({"type": "quit"}).encode()
    with start() as process:
        assert process.stdin is not None
        process.stdin.write(b"M" + len(message).to_bytes(4, "big") + message)
        process.stdin.flush()
        assert process.wait(PATIENCE) == 70


def test_a_stuck_screen_ends_when_the_server_is_gone() -> None:
    with start() as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 70
