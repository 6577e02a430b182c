"""The dashboard as plain text, pane below pane: for pipes, mails and terminals that can show no screen.

The panes themselves draw it, so that it has the same numbers as the screen.
"""

from __future__ import annotations

from collections.abc import Iterator

from atropos_tui.ui.header import Header
from atropos_tui.ui.ink import Line
from atropos_tui.ui.moment import Moment
from atropos_tui.ui.panes.inference import InferencePane
from atropos_tui.ui.panes.queue import QueuePane
from atropos_tui.ui.panes.scores import ScoresPane
from atropos_tui.ui.panes.sends import SendsPane
from atropos_tui.ui.panes.skipped import SkippedPane

DEFAULT_WIDTH = 100
_PANE_HEIGHT = 16
_INDENT = "  "


def report(moment: Moment, width: int = DEFAULT_WIDTH) -> str:
    """Lines of at most `width` cells, with a newline at the end."""
    return "".join(f"{line.plain.rstrip()}\n" for line in _lines(moment, width))


def _lines(moment: Moment, width: int) -> Iterator[Line]:
    header = Header("", read_only=False)
    header.moment = moment
    yield from (Line(line.plain.strip()) for line in header.draw(width, 3))
    for pane in (QueuePane(), ScoresPane(), SkippedPane(), SendsPane(), InferencePane()):
        pane.moment = moment
        yield Line()
        yield (Line(pane.title.upper(), _INDENT) + pane.numbers(width - len(pane.title) - len(_INDENT))).fit(width)
        yield from (Line(_INDENT) + line for line in pane.body(width - len(_INDENT), _PANE_HEIGHT))
