"""One group, one rollout of it in full (or two side by side): messages, or tokens under a lens."""

from __future__ import annotations

from collections.abc import Sequence

from atropos_tui.monitor.snapshot import GroupDetail, RolloutDetail
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.views.rollout_head import group_facts, rollout_facts, score_chips
from atropos_tui.ui.views.rollout_text import View, first_difference, messages_or_decoded, token_lines, what_broke
from atropos_tui.ui.views.tokens import (
    Lens,
    Token,
    TokenLayout,
    TokenView,
    least_likely,
    legend,
    token_facts,
    tokens_of,
)

_BETWEEN = Line(Span(" │ ", Ink.FAINT))


class RolloutPane(Pane):
    """The cursor keys scroll; which rollout, view, lens and token are shown is asked for by the screen."""

    title = "Rollout"

    def __init__(self) -> None:
        super().__init__()
        self.detail: GroupDetail | None = None
        self.failure = ""
        self.view = View.MESSAGES
        self.lens = Lens.LOGPROB
        self.rollout = 0
        self.beside: int | None = None
        self.token = 0
        self._rank = 0
        self._first_line = 0
        self._tokens: list[Token] = []
        self._texts: list[Sequence[Line]] = []
        self._text_room = 1
        self._text_key: tuple[object, ...] = ()
        self._layouts: dict[tuple[int, int], TokenLayout] = {}

    @property
    def rollouts(self) -> Sequence[RolloutDetail]:
        return self.detail.rollouts if self.detail else ()

    def open_group(self, detail: GroupDetail) -> None:
        self.detail, self.failure = detail, ""
        self.beside = None
        self._layouts.clear()
        self._to_rollout(min(self.rollout, max(0, len(detail.rollouts) - 1)))

    def fail(self, why: str) -> None:
        """The group could not be loaded."""
        self.detail, self.failure = None, why
        self.redraw()

    def step_to_rollout(self, by: int) -> None:
        if self.rollouts:
            self._to_rollout((self.rollout + by) % len(self.rollouts))

    def to_extreme(self, sign: int) -> None:
        """The rollout with the highest (+1) or lowest (-1) score."""
        if self.rollouts:
            self._to_rollout(self._extreme(sign))

    def compare(self) -> None:
        """Beside this rollout the best one, or the worst if this is the best; asked again, this one alone."""
        if self.beside is not None or len(self.rollouts) < 2:
            self.beside = None
        else:
            best = self._extreme(1)
            self.beside = best if best != self.rollout else self._extreme(-1)
            if self.beside == self.rollout:
                self.beside = (self.rollout + 1) % len(self.rollouts)
            self.token = first_difference(self._tokens, tokens_of(self.rollouts[self.beside]))
        self.redraw()

    def step_beside(self) -> None:
        """Compare with the next rollout."""
        if self.beside is not None:
            self.beside = (self.beside + 1) % len(self.rollouts)
            self.redraw()

    def next_view(self) -> None:
        self.view = View.TOKENS if self.view is View.MESSAGES else View.MESSAGES
        self._first_line = 0
        self.redraw()

    def next_lens(self) -> None:
        lenses = list(Lens)
        self.view, self.lens = View.TOKENS, lenses[(lenses.index(self.lens) + 1) % len(lenses)]
        self.redraw()

    def step_to_token(self, by: int) -> None:
        if self._tokens:
            self._to_token(max(0, min(len(self._tokens) - 1, self.token + by)))

    def to_least_likely(self) -> None:
        """The least likely token; asked again from there, the one that follows it."""
        order = least_likely(self._tokens)
        if order:
            self._rank = (self._rank + 1) % len(order) if order[self._rank : self._rank + 1] == [self.token] else 0
            self._to_token(order[self._rank])

    def move_cursor(self, by: int) -> None:
        self._first_line = max(0, min(self._first_line + by, self._lines - self._text_room))
        self.redraw()

    def numbers(self, room: int) -> Line:
        del room
        if not self.rollouts:
            return Line()
        return Line(dim(f"{self.view} · "), strong(f"{self.rollout + 1}/{len(self.rollouts)}"))

    def body(self, width: int, height: int) -> list[Line]:
        if self.failure:
            return [Line(Span(visible(self.failure), Ink.BAD))]
        if self.detail is None:
            return [waiting("choose a group")]
        head = self._head(self.detail, width)
        self._text_room = max(1, height - len(head) - 1)
        self._lay_out(self.detail, width)
        self._first_line = max(0, min(self._first_line, self._lines - self._text_room))
        last = min(self._lines, self._first_line + self._text_room)
        return [*head, self._rule(width, last), *(self._line(index, width) for index in range(self._first_line, last))]

    def _head(self, detail: GroupDetail, width: int) -> list[Line]:
        row = detail.row
        head = [group_facts(row, self.moment.since(row.at), width)]
        head.append(Line(dim("item "), visible(row.item)).fit(width))
        if not self.rollouts:
            return head
        head += [Line(), *score_chips(self.rollouts, self.rollout, self.beside, width), Line()]
        head.append(rollout_facts(self.rollouts[self.rollout], self.rollouts, self._tokens, width))
        if self.view is View.TOKENS and self._tokens:
            head += [legend(self.lens), token_facts(self._tokens[self.token], len(self._tokens), width)]
        return head

    def _rule(self, width: int, last: int) -> Line:
        """Between head and text; says which lines are shown where not all are."""
        if self._lines <= self._text_room:
            return Line(faint("─" * width))
        where = f" lines {self._first_line + 1}–{last} of {formatting.count(self._lines)} "
        return Line(faint("─" * (width - len(where) - 2)), dim(where), faint("──"))

    @property
    def _lines(self) -> int:
        return max((len(text) for text in self._texts), default=0)

    def _line(self, index: int, width: int) -> Line:
        parts = [text[index] if index < len(text) else Line() for text in self._texts]
        if len(parts) == 1:
            return parts[0]
        half = (width - _BETWEEN.width) // 2
        return parts[0].fit(half) + _BETWEEN + parts[1].fit(half)

    def _extreme(self, sign: int) -> int:
        scored = [(rollout.score, index) for index, rollout in enumerate(self.rollouts) if rollout.score is not None]
        return max(scored, key=lambda pair: (pair[0] * sign, -pair[1]), default=(0.0, self.rollout))[1]

    def _to_rollout(self, index: int) -> None:
        self.rollout = index
        self._tokens = tokens_of(self.rollouts[index]) if self.rollouts else []
        trained = (token.index for token in self._tokens if token.trained)
        self.token = next(trained, 0)
        self._rank, self._first_line = 0, 0
        self.redraw()

    def _to_token(self, index: int) -> None:
        self.view, self.token = View.TOKENS, index
        self.redraw()
        text = self._texts[0] if self._texts else ()
        if isinstance(text, TokenView):
            line = text.cursor_line
            if not self._first_line <= line < self._first_line + self._text_room - 1:
                self.move_cursor(line - self._first_line - self._text_room // 2)

    def _lay_out(self, detail: GroupDetail, width: int) -> None:
        """Make the lines of the chosen text, unless they are there from the last time."""
        key = (detail.row.group_id, self.rollout, self.beside, self.view, self.lens, self.token, width)
        if key == self._text_key:
            return
        self._text_key = key
        broke = what_broke(detail, width)
        if not self.rollouts:
            self._texts = [broke]
        elif self.beside is None:
            self._texts = [[*broke, *text] if broke else text for text in [self._text(self.rollout, width)]]
        else:
            half = (width - _BETWEEN.width) // 2
            self._texts = [self._text(self.rollout, half), self._text(self.beside, half)]

    def _text(self, index: int, width: int) -> Sequence[Line]:
        if self.view is View.TOKENS:
            return token_lines(self._token_layout(index, width), self.lens, self.token)
        return messages_or_decoded(self.rollouts[index], width)

    def _token_layout(self, index: int, width: int) -> TokenLayout:
        """Made once: going from token to token must not lay out a hundred thousand of them anew."""
        if (index, width) not in self._layouts:
            tokens = self._tokens if index == self.rollout else tokens_of(self.rollouts[index])
            self._layouts[index, width] = TokenLayout(tokens, width)
        return self._layouts[index, width]
