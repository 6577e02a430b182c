"""The screen inside a real tmux of 80×24 with its usual TERM: drawn, usable, and gone without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.marked_processes import wait_until

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A server of its own with one window, in which the recorded app runs under a shell."""

    def __init__(self, term: str) -> None:
        self._socket = f"atropos-{uuid.uuid4().hex[:8]}"
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TEXTUAL_THEME", "TMUX")}
        self._environment = kept | {"LC_ALL": "C.UTF-8"}
        self("-f", "/dev/null", "-u", "new-session", "-d", "-x", "80", "-y", "24", "-s", "screen", "sh")
        self("set-option", "-g", "default-terminal", term)
        self("respawn-window", "-k", "-c", str(ROOT), "sh")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments], env=self._environment, capture_output=True, text=True,
            timeout=PATIENCE, check=True,
        )  # fmt: skip
        return done.stdout

    def press(self, *keys: str) -> None:
        self("send-keys", *keys)

    def wait_for(self, text: str) -> None:
        try:
            wait_until(lambda: text in self("capture-pane", "-p"), within=PATIENCE)
        except AssertionError:
            raise AssertionError(f"{text!r} never came:\n{self('capture-pane', '-p')}") from None

    def is_alternate(self) -> bool:
        """Whether a program has the whole screen."""
        return self("display-message", "-p", "#{alternate_on}").strip() == "1"


@pytest.fixture(params=["screen-256color", "tmux-256color"])
def tmux(request: pytest.FixtureRequest) -> Iterator[Tmux]:
    server = Tmux(request.param)
    try:
        yield server
    finally:
        server("kill-server")


def test_the_screen_lives_in_tmux(tmux: Tmux) -> None:
    tmux.press(f"{sys.executable} -m tests.ui.recorded_app running", "Enter")
    tmux.wait_for("Rollout queue")
    assert tmux.is_alternate()
    assert tmux("display-message", "-p", "#{mouse_any_flag}").strip() == "0"
    tmux.press("z")
    tmux.wait_for("esc back")
    tmux.press("Escape")
    tmux.wait_for("Trainer sends")

    tmux("resize-window", "-x", "120", "-y", "40")
    tmux.wait_for("F fleet")
    tmux.press("q")
    tmux.wait_for("stop")
    tmux.press("d")
    tmux.wait_for("answer 'detach'")
    assert not tmux.is_alternate()
    tmux.press("echo and on", "Enter")
    tmux.wait_for("and on")
