"""What an operator sees of the record: its size, what is missing from it, and that it stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.geometry import Size

from atropos_tui.monitor.snapshot import RecordSection
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.sends import SendsPane
from tests.ui.recorded import NOW, running


def record_line(record: RecordSection, width: int = 100) -> str:
    pane = SendsPane()
    pane.moment = Moment(snapshot=replace(running(), record=record), now=NOW)
    lines = [line.plain.strip() for line in pane.body(width, Size(width, 30).height)]
    return next((line for line in lines if line.startswith("record")), "")


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (RecordSection(), ""),
        (RecordSection(level="all", size=1_200_000), "record    1.2 MB"),
        (RecordSection(level="all", size=1_200_000, size_limit=20_000_000_000), "record    1.2 MB of 20 GB"),
        (
            RecordSection(level="all", size=900, dropped_arrays=1_200, dropped_contents=30, missed_contents=4),
            "record    900 B · 1,200 without tokens · 30 without messages · 4 came too fast",
        ),
        (RecordSection(level="all", size=9, stopped="the disk is full"), "record    stopped: the disk is full"),
    ],
)
def test_the_line_tells_size_and_what_is_missing(record: RecordSection, shown: str) -> None:
    assert record_line(record) == shown


def test_in_a_narrow_pane_the_size_stays() -> None:
    assert record_line(RecordSection(level="all", size=900, dropped_contents=12345), width=24) == "record    900 B"
