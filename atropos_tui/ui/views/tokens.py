"""The tokens of a rollout under a lens: what was trained on, how likely each was, which way it is pushed.

Every row of text has a lane below it that says the same without colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, chop_cells

from atropos_tui.monitor.snapshot import RolloutDetail
from atropos_tui.ui.ink import Ground, Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.text_safety import visible

NOT_TRAINED = -100
NOT_SAMPLED = 1.0
_LOW_BLOCKS = "▁▂▃▄▅▆▇█"
# At this surprise (nats) the lane is at its highest: the token had a probability of e^-6 = 0.25 %.
_FULL_SURPRISE = 6.0


class Lens(StrEnum):
    """What the token view shows of each token."""

    MASK = "mask"
    LOGPROB = "logprob"
    ADVANTAGE = "advantage"


@dataclass(frozen=True, slots=True)
class Token:
    """One token. None stands where the environment gave nothing, or the token was not sampled."""

    index: int
    token_id: int
    text: str
    trained: bool
    logprob: float | None
    advantage: float | None

    @property
    def surprise(self) -> float | None:
        return None if self.logprob is None else max(0.0, -self.logprob)


def tokens_of(rollout: RolloutDetail) -> list[Token]:
    """The tokens with all that is known of each; lists of other lengths than the tokens' are not trusted."""
    many = len(rollout.tokens)

    def aligned(values: Sequence[float]) -> Sequence[float | None]:
        return values if len(values) == many else [None] * many

    logprobs, advantages = aligned(rollout.logprobs), aligned(rollout.advantages)
    pieces = rollout.pieces if len(rollout.pieces) == many else [f"‹{token}›" for token in rollout.tokens]
    masks = rollout.masks if len(rollout.masks) == many else [0] * many
    return [
        Token(
            index=index,
            token_id=rollout.tokens[index],
            text=visible(pieces[index]) or "‹›",
            trained=masks[index] != NOT_TRAINED,
            logprob=_sampled(logprobs[index]),
            advantage=advantages[index],
        )
        for index in range(many)
    ]


def least_likely(tokens: Sequence[Token]) -> list[int]:
    """The numbers of the trained tokens, the least likely first."""
    ranked = sorted((t for t in tokens if t.trained and t.surprise is not None), key=lambda t: -(t.surprise or 0.0))
    return [token.index for token in ranked]


class TokenLayout:
    """The tokens in rows of a width; the same whatever lens one looks through."""

    def __init__(self, tokens: Sequence[Token], width: int) -> None:
        self.rows = _laid_out(tokens, width)


class TokenView(Sequence[Line]):
    """Lines of text and lanes in turn, drawn only when they are asked for."""

    def __init__(self, layout: TokenLayout, lens: Lens, cursor: int) -> None:
        self._rows = layout.rows
        self._lens = lens
        self._cursor = cursor

    def __len__(self) -> int:
        return len(self._rows) * 2

    def __getitem__(self, index: int) -> Line:  # type: ignore[override]  # nobody slices it
        row = self._rows[index // 2]
        if index % 2 == 0:
            return Line(*(self._text_span(piece) for piece in row))
        return Line(*(Span(self._lane(piece), self._ink(piece.token)) for piece in row))

    @property
    def cursor_line(self) -> int:
        """The line of the token under the cursor."""
        for number, row in enumerate(self._rows):
            if row and row[-1].token.index >= self._cursor:
                return number * 2
        return max(0, len(self) - 2)

    def _text_span(self, piece: _Piece) -> Span:
        ink = self._ink(piece.token)
        if piece.token.index == self._cursor:
            return Span(piece.text, Ink.TEXT if ink is Ink.FAINT else ink, True, Ground.CURSOR)
        return Span(piece.text, ink)

    def _ink(self, token: Token) -> Ink:
        if not token.trained:
            return Ink.FAINT
        match self._lens:
            case Lens.MASK:
                return Ink.TEXT
            case Lens.LOGPROB:
                return Ink.DIM if token.surprise is None else _surprise_ink(token.surprise)
            case Lens.ADVANTAGE:
                if not token.advantage:
                    return Ink.DIM
                return Ink.GOOD if token.advantage > 0 else Ink.BAD

    def _lane(self, piece: _Piece) -> str:
        token, cells = piece.token, cell_len(piece.text)
        if not token.trained:
            return " " * cells
        match self._lens:
            case Lens.MASK:
                return _token_mark(cells)
            case Lens.LOGPROB:
                return _surprise_block(token.surprise) * cells
            case Lens.ADVANTAGE:
                return _advantage_mark(token.advantage) * cells


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of a token's text that stands in one row."""

    token: Token
    text: str


def token_facts(token: Token, many: int, width: int) -> Line:
    """What is known of one token, in words; the most important first."""
    logprob = "not sampled" if token.logprob is None else f"{token.logprob:.3f} ({math.exp(token.logprob):.1%})"
    ink = Ink.DIM if token.surprise is None else _surprise_ink(token.surprise)
    parts = [
        Line(dim("token "), strong(f"{token.index + 1}/{many}")),
        Line(Span("trained" if token.trained else "masked", Ink.TEXT if token.trained else Ink.DIM)),
        Line(dim("logprob "), Span(logprob, ink)),
        Line(dim("advantage "), "–" if token.advantage is None else f"{token.advantage:+.2f}"),
        Line(dim("id "), str(token.token_id)),
        Line(faint("“"), token.text, faint("”")),
    ]
    return join_that_fit(parts, width)


def legend(lens: Lens) -> Line:
    """How to read the lanes."""
    match lens:
        case Lens.MASK:
            return Line(dim("mask  "), "╺━╸", dim(" trained  "), faint("text"), dim(" masked"))
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


def _laid_out(tokens: Sequence[Token], width: int) -> list[list[_Piece]]:
    """Tokens flow into rows of `width` cells; a line feed shows and ends its row."""
    rows: list[list[_Piece]] = [[]]
    used = 0
    for token in tokens:
        for text in chop_cells(token.text, max(2, width)):
            cells = cell_len(text)
            if used + cells > width and rows[-1]:
                rows.append([])
                used = 0
            rows[-1].append(_Piece(token, text))
            used += cells
        if token.text.endswith("↵"):
            rows.append([])
            used = 0
    return rows if rows[-1] else rows[:-1]


def _sampled(logprob: float | None) -> float | None:
    """Logprobs above zero are placeholders, not probabilities."""
    return None if logprob is None or logprob > 0 or math.isnan(logprob) else logprob


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
