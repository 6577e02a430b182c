"""A frame with a title in its top edge at the left and the numbers that matter at the right."""

from __future__ import annotations

from atropos_tui.ui.ink import Ink, Line, Span

FRAME_WIDTH = 4
FRAME_HEIGHT = 2


def framed(body: list[Line], width: int, height: int, *, title: Line, numbers: Line, focused: bool) -> list[Line]:
    """`body` in a frame of `width` × `height` cells: one blank column at either side inside of it.

    The focus shows by a mark too, not by colour alone.
    """
    edge = Ink.ACCENT if focused else Ink.FAINT
    inner = width - FRAME_WIDTH
    rows = [line.fit(inner) for line in body[: height - FRAME_HEIGHT]]
    rows += [Line().fit(inner)] * (height - FRAME_HEIGHT - len(rows))
    left, right = Line(Span("│ ", edge)), Line(Span(" │", edge))
    return [
        _top_edge(width, edge, title, numbers, corner="╭▸" if focused else "╭─"),
        *(left + row + right for row in rows),
        Line(Span("╰" + "─" * (width - 2) + "╯", edge)),
    ]


def _top_edge(width: int, edge: Ink, title: Line, numbers: Line, corner: str) -> Line:
    head = Line(Span(f"{corner} ", edge)) + title + Line(" ")
    tail = Line(" ") + numbers + Line(Span(" ─╮", edge)) if numbers.spans else Line(Span("─╮", edge))
    if head.width + tail.width > width:
        tail = Line(Span("─╮", edge))
    rule = width - head.width - tail.width
    return head + Line(Span("─" * rule, edge)) + tail
