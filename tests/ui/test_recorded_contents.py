"""In a recorded moment the screen says how old what contents told is, or that it was not recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atropos_tui.monitor.snapshot import RunSnapshot, ScoresSection
from atropos_tui.ui.moment import Contact, Moment
from atropos_tui.ui.panes.scores import ScoresPane
from tests.ui.recorded import NOW, running

WIDE, NARROW = 160, 80


def drawn(scores: ScoresSection, width: int) -> str:
    pane = ScoresPane()
    pane.zoom(zoomed=True)
    snapshot: RunSnapshot = replace(running(), scores=scores)
    pane.moment = Moment(snapshot, NOW, Contact.CONNECTED)
    lines = pane.body(width, 40)
    assert all(line.width <= width for line in lines)
    return "\n".join(line.plain for line in lines)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_what_was_kept_a_while_before_says_so(width: int) -> None:
    scores = running().scores
    assert "before" not in drawn(scores, width)
    shown = drawn(replace(scores, kept_at=NOW - 12), width)
    assert shown.count("as of 12s before") == 2
    assert scores.parts[0].name in shown


@pytest.mark.parametrize(("width", "times"), [(WIDE, 2), (NARROW, 1)])
def test_what_was_not_kept_is_said_to_be_missing(width: int, times: int) -> None:
    scores = replace(running().scores, parts=(), looks=ScoresSection().looks, kept_at=-1.0)
    shown = drawn(scores, width)
    assert shown.count("not recorded so early") == times
    assert "score_parts" not in shown
    assert "none yet" not in shown
