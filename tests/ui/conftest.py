"""The screen under a frozen clock, fed from a recorded run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.notifications import SeverityLevel
from textual.pilot import Pilot

from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.leaving import DETACH, STOP
from tests.ui.recorded import NOW, RecordedSource, running

MakeApp = Callable[..., "ListenedApp"]


class ListenedApp(AtroposApp):
    """Keeps what it says; notes on the screen go away after a while."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.said: list[str] = []

    def say(self, text: str, severity: SeverityLevel = "information") -> None:
        self.said.append(text)
        super().say(text, severity)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the developer's own terminal says must not change what is drawn."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def make_app() -> MakeApp:
    """An app that plays snapshots (by default a run in full swing), with the time standing still."""

    def make(*snapshots: RunSnapshot, source: RecordedSource | None = None, **options: Any) -> ListenedApp:
        options.setdefault("on_quit", (STOP, DETACH))
        options.setdefault("clock", lambda: 0.0)
        options.setdefault("wall_clock", lambda: NOW)
        options.setdefault("theme", "dusk")
        return ListenedApp(source or RecordedSource(*(snapshots or (running(),))), **options)

    return make


async def until(pilot: Pilot[Any], condition: Callable[[], object], within: float = 60.0) -> None:
    """Let the app work until the condition holds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {within} s"
        await pilot.pause()
