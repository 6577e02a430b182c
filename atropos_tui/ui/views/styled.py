"""A line of text with styles in it and the places where searched words stand; cut to the screen only when shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from atropos_tui.ui.ink import Ground, Ink, Line, Span


class Style(NamedTuple):
    """From `start` to `end` the text has this ink."""

    start: int
    end: int
    ink: Ink
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Styled:
    """`styles` and `hits` (start and end of each word that was searched) are in order and do not overlap."""

    text: str
    ink: Ink = Ink.TEXT
    styles: tuple[Style, ...] = ()
    hits: tuple[tuple[int, int], ...] = ()

    def line(self, start: int, end: int) -> Line:
        """The part from `start` to `end`."""
        if not self.styles and not self.hits:
            return Line(Span(self.text[start:end], self.ink))
        return Line(*self._spans(start, end))

    def has_hit(self, start: int, end: int) -> bool:
        """Whether a searched word begins in this part."""
        return any(start <= begin < end for begin, _ in self.hits)

    def _spans(self, start: int, end: int) -> Iterator[Span]:
        edges = {start, end}
        for first, last in (*((style.start, style.end) for style in self.styles), *self.hits):
            edges |= {edge for edge in (first, last) if start < edge < end}
        ordered = sorted(edges)
        for first, last in pairwise(ordered):
            style = next((style for style in self.styles if style.start <= first < style.end), None)
            ink, bold = (style.ink, style.bold) if style else (self.ink, False)
            if any(begin <= first < stop for begin, stop in self.hits):
                yield Span(self.text[first:last], Ink.WARN, True, Ground.SELECTED)
            else:
                yield Span(self.text[first:last], ink, bold)


def hits_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """What finds any of these words, whatever their case; None for no words."""
    found = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word)
    return re.compile(found, re.IGNORECASE) if found else None


def with_hits(line: Styled, searched: re.Pattern[str] | None) -> Styled:
    """The same line, with the places of the searched words."""
    if searched is None:
        return line
    hits = tuple(found.span() for found in searched.finditer(line.text))
    return Styled(line.text, line.ink, line.styles, hits) if hits else line
