"""Lines of styled text, before any colour is chosen: what panes draw and what a theme then turns into colours.

A `Line` is immutable and comparable, so that a widget can tell which rows changed. Widths are terminal cells.
No markup is ever parsed: text is text.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Ink(StrEnum):
    """What a piece of text means; a theme gives each meaning a colour."""

    TEXT = "text"
    DIM = "dim"
    FAINT = "faint"
    ACCENT = "accent"
    CHART = "chart"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    SPIKE = "spike"
    BAND = "band"


class Ground(StrEnum):
    """What lies behind a piece of text."""

    PLAIN = "plain"
    SELECTED = "selected"
    CURSOR = "cursor"
    ALARM = "alarm"
    BAND = "band"


class Span(NamedTuple):
    text: str
    ink: Ink = Ink.TEXT
    bold: bool = False
    ground: Ground = Ground.PLAIN


class Line:
    """A row of spans."""

    __slots__ = ("spans", "width")

    def __init__(self, *spans: Span | str) -> None:
        kept = []
        self.width = 0
        for span in spans:
            styled = Span(span) if isinstance(span, str) else span
            if styled.text:
                kept.append(styled)
                self.width += cell_len(styled.text)
        self.spans: tuple[Span, ...] = tuple(kept)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self.spans == other.spans

    def __hash__(self) -> int:
        return hash(self.spans)

    def __add__(self, other: Line) -> Line:
        return Line(*self.spans, *other.spans)

    def __repr__(self) -> str:
        return f"Line({self.plain!r})"

    @property
    def plain(self) -> str:
        return "".join(span.text for span in self.spans)

    def fit(self, width: int) -> Line:
        """Exactly `width` cells: filled with blanks, or cut with an ellipsis."""
        if self.width == width:
            return self
        if self.width < width:
            return Line(*self.spans, Span(" " * (width - self.width)))
        return self._cut(width)

    def fit_right(self, width: int) -> Line:
        """As `fit`, but the text stands at the right."""
        if self.width >= width:
            return self.fit(width)
        return Line(Span(" " * (width - self.width)), *self.spans)

    def on(self, ground: Ground) -> Line:
        """The same text on another ground, where it has none of its own."""
        return Line(*(s._replace(ground=ground) if s.ground is Ground.PLAIN else s for s in self.spans))

    def _cut(self, width: int) -> Line:
        if width <= 0:
            return Line()
        kept: list[Span] = []
        room = width - 1
        for span in self.spans:
            length = cell_len(span.text)
            if length > room:
                kept.append(span._replace(text=clip(span.text, room + 1)))
                break
            kept.append(span)
            room -= length
        return Line(*kept)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Neighbours of the same style made one."""
    result: list[Span] = []
    for span in spans:
        if result and result[-1][1:] == span[1:]:
            result[-1] = result[-1]._replace(text=result[-1].text + span.text)
        else:
            result.append(span)
    return result


def join(parts: Iterable[Line], separator: str = "  ") -> Line:
    """The non-empty parts beside each other."""
    spans: list[Span] = []
    for part in parts:
        if not part.spans:
            continue
        if spans:
            spans.append(Span(separator, Ink.FAINT))
        spans.extend(part.spans)
    return Line(*spans)


def join_that_fit(parts: Iterable[Line], width: int, separator: str = "  ") -> Line:
    """As `join`, leaving out each part for which the ones before it left no room."""
    kept = Line()
    for part in parts:
        longer = join((kept, part), separator)
        if longer.width <= width:
            kept = longer
    return kept


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` at the left and `right` at the right; where there is too little room, `left` is cut."""
    if right.width + 1 >= width:
        return left.fit(width)
    return left.fit(width - right.width - 1) + Line(" ") + right


def clip(text: str, width: int) -> str:
    """At most `width` cells of `text`; an ellipsis tells that there is more."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…"


def clip_middle(text: str, width: int) -> str:
    """At most `width` cells: the beginning and the last seven, with an ellipsis for what is left out between them."""
    if cell_len(text) <= width or width < 3:
        return clip(text, width)
    tail = min(7, (width - 1) // 2)
    return set_cell_size(text, width - 1 - tail) + "…" + text[len(text) - tail :]


def dim(text: str) -> Span:
    return Span(text, Ink.DIM)


def faint(text: str) -> Span:
    return Span(text, Ink.FAINT)


def strong(text: str, ink: Ink = Ink.TEXT) -> Span:
    return Span(text, ink, bold=True)
