"""Logs can be read while they grow: lines keep their order, and a traceback is there to its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.pilot import Pilot

from atropos_tui.monitor.snapshot import LogRow, LogsSection, RunSnapshot
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.logs import LogsPane
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import NOW, RecordedSource, running
from tests.ui.screen_steps import known, painted

SMALL = (80, 24)
TRACEBACK = "\n".join(
    [
        "Traceback (most recent call last):",
        *(f'  File "library.py", line {n}, in frame_{n}' for n in range(60)),
        "ValueError: at last",
    ]
)


def logged(*texts: str, seq: int = 1) -> RunSnapshot:
    """The last line is the newest; a line is known by its text."""
    rows = [LogRow("INFO", "env", text, 1, NOW - 100 - ord(text[0]), NOW - 9, TRACEBACK) for text in reversed(texts)]
    return replace(running(), seq=running().seq + seq, logs=LogsSection(rows=tuple(rows)))


async def opened(pilot: Pilot[Any]) -> LogsPane:
    app = await known(pilot)
    await pilot.press("l")
    await until(pilot, lambda: app.screen.query(LogsPane))
    return app.screen.query_one(LogsPane)


def order(pane: LogsPane) -> str:
    return "".join(row.text[0] for row in pane.log_rows)


async def test_lines_keep_their_order_while_somebody_reads_and_new_ones_stand_above(make_app: MakeApp) -> None:
    source = RecordedSource(logged("a", "b", "c"))
    async with make_app(source=source).run_test(size=SMALL) as pilot:
        pane = await opened(pilot)
        assert order(pane) == "cba"
        await pilot.press("j")
        source.play(logged("d", "b", "c", "a", seq=2))
        await until(pilot, lambda: pane.rows == 4)
        assert order(pane) == "dcba"
        assert pane.log_rows[pane.cursor].text == "b"
        assert "order held" in painted(pane)
        await pilot.press("g")
        source.play(logged("d", "c", "b", "a", seq=3))
        await until(pilot, lambda: order(pane) == "abcd")
        assert "order held" not in painted(pane)


async def test_of_a_long_traceback_the_end_is_shown(make_app: MakeApp) -> None:
    async with make_app(logged("a")).run_test(size=SMALL) as pilot:
        picture = painted(await opened(pilot))
        assert "more lines; z shows all" in picture
        assert "ValueError: at last" in picture
        assert "frame_59" in picture


async def test_z_shows_a_line_and_all_of_its_traceback_on_the_whole_screen(make_app: MakeApp) -> None:
    source = RecordedSource(logged("a", "b"))
    app = make_app(source=source)
    async with app.run_test(size=SMALL) as pilot:
        pane = await opened(pilot)
        await pilot.press("z")
        await until(pilot, lambda: "frame_0" in painted(pane) and "more lines" in painted(pane))
        source.play(logged("b", "a", seq=2))
        await until(pilot, lambda: pane.moment.snapshot.seq == running().seq + 2)
        assert pane.log_rows[pane.cursor].text == "b"
        await pilot.press("G")
        await until(pilot, lambda: "ValueError: at last" in painted(pane))
        await pilot.press("g")
        await until(pilot, lambda: "frame_0" in painted(pane))
        await pilot.press("j", "j", "j")
        await until(pilot, lambda: painted(pane).splitlines()[1].strip("│ ").startswith("File"))
        await pilot.press("escape")
        assert not pane.zoomed
        assert "logger" in painted(pane)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, DashboardScreen))
