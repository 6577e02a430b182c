"""Tokens under a lens: what was trained on, how likely each was, which way it is pushed, how far from the reference.

Every row of text has a lane below it that says the same without colour.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.views.text import Text
from atropos_tui.ui.views.token_hits import TokenHits
from atropos_tui.ui.views.tokens import Token, Tokens
from atropos_tui.ui.wrapping import fitting

MARGIN = 2

_LOW_BLOCKS = "▁▂▃▄▅▆▇█"
# At this surprise (nats) the lane is at its highest: the token had a probability of e^-6 = 0.25 %.
_FULL_SURPRISE = 6.0
# Differences to the reference (nats) below the first are none, from the second on large.
_SLIGHT, _LARGE = 0.1, 1.0


class Lens(StrEnum):
    """What the token view shows of each token."""

    MASK = "mask"
    LOGPROB = "logprob"
    ADVANTAGE = "advantage"
    REFERENCE = "reference"


class _Piece(NamedTuple):
    """The part of a token's text that stands in one row, from its character `begin` on."""

    token: int
    begin: int
    text: str


class TokenLayout:
    """The tokens in rows of a width; the same whatever lens one looks through.

    Tokens flow into rows of `width` cells; a line feed shows and ends its row; what is longer than a row is broken.
    """

    def __init__(self, tokens: Tokens, width: int) -> None:
        self.tokens = tokens
        # Of each row: its first token and where in that the row begins, and the same for the row after it.
        self._starts: list[tuple[int, int]] = []
        self._lay_out(max(2, width))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def row(self, number: int) -> Iterator[_Piece]:
        (first, begin), (last, end) = self._starts[number], self._starts[number + 1]
        texts = self.tokens.texts
        for index in range(first, last):
            at = begin if index == first else 0
            yield _Piece(index, at, texts[index][at:])
        if end:
            at = begin if last == first else 0
            yield _Piece(last, at, texts[last][at:end])

    def row_of(self, token: int, character: int = 0) -> int:
        """The row in which this character of a token stands."""
        return max(0, bisect_right(self._starts, (token, character)) - 1)

    def any_in_row(self, places: Sequence[tuple[int, int]], number: int) -> bool:
        """Whether one of these places, which are tokens and characters in order, stands in a row."""
        return bisect_left(places, self._starts[number]) < bisect_left(places, self._starts[number + 1])

    def _lay_out(self, width: int) -> None:
        texts = self.tokens.texts
        cells = {text: cell_len(text) for text in set(texts)}
        starts, used = [(0, 0)] if texts else [], 0
        for index, text in enumerate(texts):
            if used + cells[text] > width and used:
                starts.append((index, 0))
                used = 0
            if cells[text] > width:
                used = self._break(starts, index, text, width)
            else:
                used += cells[text]
            if text.endswith("↵") and index + 1 < len(texts):
                starts.append((index + 1, 0))
                used = 0
        self._starts = [*starts, (len(texts), 0)]

    def _break(self, starts: list[tuple[int, int]], index: int, text: str, width: int) -> int:
        """Rows for a text that is longer than one; how many cells of the last are used."""
        at = fitting(text, 0, width)
        while at < len(text):
            starts.append((index, at))
            at = fitting(text, at, width)
        return cell_len(text[starts[-1][1] :])


class _LinesOfHits(Sequence[int]):
    """The line of each hit, looked up when it is asked for: a view is made anew for each step of the cursor."""

    def __init__(self, layout: TokenLayout, found: TokenHits) -> None:
        self._layout = layout
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # nobody slices it
        return self._layout.row_of(*self._found.places[index]) * 2


class TokenView(Text):
    """Lines of text and lanes in turn, drawn only when they are asked for.

    With `found` hits of a search, a mark at the left of `MARGIN` cells tells which lines have one, under any lens.
    There `hits` has the line of every hit.
    """

    def __init__(self, layout: TokenLayout, lens: Lens, cursor: int, found: TokenHits | None = None) -> None:
        self._layout = layout
        self._lens = lens
        self._cursor = cursor
        self._found = found
        if found is not None:
            self.hits = _LinesOfHits(layout, found)

    def __len__(self) -> int:
        return len(self._layout) * 2

    def line(self, index: int) -> Line:
        row = self._layout.row(index // 2)
        tokens = self._layout.tokens
        if index % 2 == 0:
            spans = [span for piece in row for span in self._text_spans(piece, tokens[piece.token])]
        else:
            spans = [self._lane_span(piece, tokens[piece.token]) for piece in row]
        return Line(*spans) if self._found is None else Line(self._margin(index), *spans)

    @property
    def cursor_line(self) -> int:
        """The line of the token under the cursor."""
        return self._layout.row_of(self._cursor) * 2

    def _margin(self, index: int) -> Span:
        begins = self._found is not None and index % 2 == 0 and self._layout.any_in_row(self._found.places, index // 2)
        return Span("» ", Ink.WARN, bold=True) if begins else Span(" " * MARGIN)

    def _text_spans(self, piece: _Piece, token: Token) -> Iterator[Span]:
        """A hit has a ground of its own, and the lens keeps its ink."""
        ink = self._ink(token)
        if piece.token == self._cursor:
            yield Span(piece.text, Ink.TEXT if ink is Ink.DIM else ink, True, Ground.CURSOR)
            return
        at = 0
        for begin, end in self._found.within(piece.token) if self._found is not None else ():
            first, last = (max(at, min(edge - piece.begin, len(piece.text))) for edge in (begin, end))
            yield Span(piece.text[at:first], ink)
            yield Span(piece.text[first:last], Ink.TEXT if ink is Ink.DIM else ink, True, Ground.SELECTED)
            at = last
        yield Span(piece.text[at:], ink)

    def _lane_span(self, piece: _Piece, token: Token) -> Span:
        lane = self._lane(piece, token)
        return Span(lane, self._ink(token)) if lane.strip() else Span(lane)

    def _ink(self, token: Token) -> Ink:
        if not token.trained:
            return Ink.DIM
        match self._lens:
            case Lens.MASK:
                return Ink.ACCENT
            case Lens.LOGPROB:
                return Ink.TEXT if token.surprise is None else _surprise_ink(token.surprise)
            case Lens.ADVANTAGE:
                if not token.advantage:
                    return Ink.TEXT
                return Ink.GOOD if token.advantage > 0 else Ink.BAD
            case Lens.REFERENCE:
                return _difference_ink(token.difference)

    def _lane(self, piece: _Piece, token: Token) -> str:
        cells = cell_len(piece.text)
        if not token.trained:
            return " " * cells
        match self._lens:
            case Lens.MASK:
                return _token_mark(cells)
            case Lens.LOGPROB:
                return _surprise_block(token.surprise) * cells
            case Lens.ADVANTAGE:
                return _advantage_mark(token.advantage) * cells
            case Lens.REFERENCE:
                return _difference_mark(token.difference) * cells


def token_facts(token: Token, many: int, width: int, lens: Lens = Lens.LOGPROB) -> Line:
    """What is known of one token, in words; what the lens is about comes first."""
    logprob = "not sampled" if token.logprob is None else f"{token.logprob:.3f} ({math.exp(token.logprob):.1%})"
    ink = Ink.DIM if token.surprise is None else _surprise_ink(token.surprise)
    parts = [
        Line(dim("token "), strong(f"{token.index + 1}/{many}")),
        Line(Span("trained" if token.trained else "masked", Ink.TEXT if token.trained else Ink.DIM)),
    ]
    about = {
        Lens.LOGPROB: Line(dim("logprob "), Span(logprob, ink)),
        Lens.ADVANTAGE: Line(dim("advantage "), "–" if token.advantage is None else f"{token.advantage:+.2f}"),
        Lens.REFERENCE: _reference_facts(token),
    }
    parts += [about.pop(lens, Line()), *about.values()]
    parts += [Line(dim("id "), str(token.token_id)), Line(faint("“"), token.text, faint("”"))]
    return join_that_fit(parts, width)


def _reference_facts(token: Token) -> Line:
    if token.reference is None:
        return Line()
    told = Line(dim("reference "), f"{token.reference:.3f}")
    if token.difference is None:
        return told
    return told + Line(dim("  difference "), Span(f"{token.difference:+.3f}", _difference_ink(token.difference)))


def legend(lens: Lens, tokens: Tokens) -> Line:
    """How to read the lanes, and what the lens finds in all of the rollout."""
    match lens:
        case Lens.MASK:
            found = f"{tokens.trained} of {len(tokens)} trained, {formatting.plural(len(tokens.mask_edges), 'edge')}"
            return Line(dim("mask  "), Span("╺━╸", Ink.ACCENT), dim(f" trained  blank: masked  ({found})"))
        case Lens.LOGPROB:
            steps = ((0.3, ">50%"), (1.0, ">10%"), (3.0, ">1%"), (6.0, "rare"))
            marks = [
                span
                for surprise, word in steps
                for span in (Span(_surprise_block(surprise), _surprise_ink(surprise)), dim(f" {word}  "))
            ]
            return Line(dim("logprob  "), *marks)
        case Lens.ADVANTAGE:
            return Line(dim("advantage  "), Span("+", Ink.GOOD), dim(" pushed up  "), Span("−", Ink.BAD), dim(" down"))
        case Lens.REFERENCE:
            return _reference_legend(tokens)


def _reference_legend(tokens: Tokens) -> Line:
    if not tokens.has_reference:
        return Line(dim("reference  "), Span("none: no ref_logprobs, no distill_logprobs", Ink.WARN))
    mean = tokens.mean_difference
    marks = [
        span
        for difference, word in ((_LARGE, f">{_LARGE:g} nat likelier"), (_SLIGHT, "likelier"), (-_SLIGHT, "less"))
        for span in (Span(_difference_mark(difference), _difference_ink(difference)), dim(f" {word}  "))
    ]
    return Line(dim("reference  "), *marks, dim("mean "), strong("–" if mean is None else f"{mean:+.3f}"))


def _token_mark(cells: int) -> str:
    """A line with a gap to its neighbours, so that tokens can be told apart."""
    return "╸" if cells == 1 else f"╺{'━' * (cells - 2)}╸"


def _surprise_block(surprise: float | None) -> str:
    if surprise is None:
        return "·"
    return _LOW_BLOCKS[int(min(7.0, surprise / _FULL_SURPRISE * 8))]


def _surprise_ink(surprise: float) -> Ink:
    """By probability: above one half, a tenth, a hundredth, or below."""
    if surprise < -math.log(0.5):
        return Ink.TEXT
    if surprise < -math.log(0.1):
        return Ink.ACCENT
    return Ink.WARN if surprise < -math.log(0.01) else Ink.BAD


def _advantage_mark(advantage: float | None) -> str:
    if not advantage:
        return "·"
    return "+" if advantage > 0 else "−"


def _difference_mark(difference: float | None) -> str:
    if difference is None:
        return " "
    if abs(difference) < _SLIGHT:
        return "·"
    if difference > 0:
        return "▲" if difference >= _LARGE else "+"
    return "▼" if difference <= -_LARGE else "−"


def _difference_ink(difference: float | None) -> Ink:
    if difference is None or abs(difference) < _SLIGHT:
        return Ink.TEXT
    if difference > 0:
        return Ink.GOOD if difference >= _LARGE else Ink.ACCENT
    return Ink.BAD if difference <= -_LARGE else Ink.WARN
