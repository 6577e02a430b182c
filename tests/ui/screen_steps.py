"""Steps that the tests of several screens take: wait for the run, read what is painted, read the open question."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from atropos_tui.ui.confirm import ConfirmScreen
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, until

SIZE = (120, 40)


def painted(canvas: Canvas) -> str:
    lines = ["".join(segment.text for segment in canvas.render_line(y)) for y in range(canvas.size.height)]
    return "\n".join(lines)


async def known(pilot: Pilot[Any]) -> ListenedApp:
    app = pilot.app
    assert isinstance(app, ListenedApp)
    await until(pilot, lambda: app.moment.known)
    return app


async def asked(pilot: Pilot[Any]) -> str:
    """The question that is open, as it is painted."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
    dialog = pilot.app.screen.query_one("#confirm-dialog", Canvas)
    await until(pilot, lambda: painted(dialog).strip())
    return painted(dialog)
