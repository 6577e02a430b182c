"""One group, one rollout of it in full: messages, or tokens under a lens."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from statistics import fmean

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.snapshot import GroupDetail, RolloutDetail
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ground, Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.panes.pane import Pane, waiting
from atropos_tui.ui.panes.skipped import OUTCOME_INKS, outcome_glyph, short_reason
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.views.messages import message_lines, prose_lines
from atropos_tui.ui.views.tokens import Lens, Token, TokenView, least_likely, legend, token_facts, tokens_of

_CHIP_WIDTH = 7
_BLOCKS = "▁▂▃▄▅▆▇█"


class View(StrEnum):
    """How the text of a rollout is shown."""

    MESSAGES = "messages"
    TOKENS = "tokens"


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
        self.token = 0
        self._rank = 0
        self._first_line = 0
        self._tokens: list[Token] = []
        self._text: Sequence[Line] = ()
        self._text_room = 1
        self._text_key: tuple[object, ...] = ()

    def open_group(self, detail: GroupDetail) -> None:
        self.detail, self.failure = detail, ""
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
        scored = [(r.score, index) for index, r in enumerate(self.rollouts) if r.score is not None]
        if scored:
            self._to_rollout(max(scored, key=lambda pair: (pair[0] * sign, -pair[1]))[1])

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
        if not order:
            return
        self._rank = (self._rank + 1) % len(order) if order[self._rank : self._rank + 1] == [self.token] else 0
        self._to_token(order[self._rank])

    @property
    def rollouts(self) -> Sequence[RolloutDetail]:
        return self.detail.rollouts if self.detail else ()

    def move_cursor(self, by: int) -> None:
        self._first_line = max(0, min(self._first_line + by, len(self._text) - self._text_room))
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
        head = [self._group_facts(width), Line(dim("item "), visible(self.detail.row.item)).fit(width)]
        if self.rollouts:
            head += [Line(), *self._chips(width), Line(), self._rollout_facts(width)]
            if self.view is View.TOKENS and self._tokens:
                head += [legend(self.lens), token_facts(self._tokens[self.token], len(self._tokens), width)]
        head.append(Line(faint("─" * width)))
        self._text_room = max(1, height - len(head))
        self._lay_out(width)
        self._first_line = max(0, min(self._first_line, len(self._text) - self._text_room))
        last = min(len(self._text), self._first_line + self._text_room)
        return head + [self._text[index] for index in range(self._first_line, last)]

    def _to_rollout(self, index: int) -> None:
        self.rollout = index
        self._tokens = tokens_of(self.rollouts[index]) if self.rollouts else []
        trained = (token.index for token in self._tokens if token.trained)
        self.token = next(trained, 0)
        self._rank, self._first_line = 0, 0
        self.redraw()

    def _to_token(self, index: int) -> None:
        self.view, self.token = View.TOKENS, index
        self._text_key = ()
        self.redraw()
        if isinstance(self._text, TokenView):
            line = self._text.cursor_line
            if not self._first_line <= line < self._first_line + self._text_room - 1:
                self.move_cursor(line - self._first_line - self._text_room // 2)

    def _lay_out(self, width: int) -> None:
        """Make the lines of the chosen text, unless they are there from the last time."""
        assert self.detail is not None
        key = (self.detail.row.group_id, self.rollout, self.view, self.lens, self.token, width)
        if key == self._text_key:
            return
        self._text_key = key
        if not self.rollouts:
            self._text = self._what_broke(width)
        elif self.view is View.TOKENS:
            self._text = TokenView(self._tokens, self.lens, width, self.token)
            if not self._tokens:
                self._text = [waiting("this rollout has no tokens")]
        else:
            rollout = self.rollouts[self.rollout]
            self._text = [*self._what_broke(width), *message_lines(rollout.messages, width)]
            if not self._text:
                self._text = self._decoded(rollout, width)

    def _decoded(self, rollout: RolloutDetail, width: int) -> list[Line]:
        """Environments need not give messages; the decoded tokens say the same."""
        if not rollout.pieces:
            return [waiting("this rollout has no messages; v shows its tokens")]
        return message_lines([{"role": "decoded", "content": "".join(rollout.pieces)}], width)

    def _what_broke(self, width: int) -> list[Line]:
        assert self.detail is not None
        lines = prose_lines(self.detail.error, width, Ink.BAD) if self.detail.error else []
        for text in (self.detail.body, self.detail.traceback):
            if text:
                lines += [*prose_lines(text, width, Ink.DIM), Line()]
        if not lines and not self.rollouts:
            return [waiting("nothing was kept of this group")]
        return lines

    def _group_facts(self, width: int) -> Line:
        assert self.detail is not None
        row = self.detail.row
        ink = OUTCOME_INKS[row.outcome]
        why = "" if row.outcome is Outcome.DELIVERED else f" · {short_reason(row)}"
        parts = [
            Line(dim("group "), strong(str(row.group_id))),
            Line(Span(f"{outcome_glyph(row.outcome)} {row.outcome}{why}", ink)),
            Line(dim("step "), formatting.count(row.step)),
            Line(dim("took "), formatting.duration(row.seconds)),
            Line(formatting.age(self.moment.since(row.at)), dim(" ago")),
        ]
        if row.weight_version is not None:
            parts.append(Line(dim("weights "), str(row.weight_version)))
        return join_that_fit(parts, width, "   ")

    def _chips(self, width: int) -> list[Line]:
        """A bar and a number for the score of each rollout; as many as fit around the chosen one."""
        room = max(1, width // _CHIP_WIDTH)
        first = max(0, min(self.rollout - room // 2, len(self.rollouts) - room))
        scores = [rollout.score for rollout in self.rollouts if rollout.score is not None]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        bars, numbers = Line(), Line()
        for index in range(first, min(len(self.rollouts), first + room)):
            score = self.rollouts[index].score
            share = 0.0 if score is None or high == low else (score - low) / (high - low)
            text = "–" if score is None else formatting.score(score)
            chosen = index == self.rollout
            block = _BLOCKS[min(7, int(share * 7.999))] * (_CHIP_WIDTH - 2)
            bars += Line(Span(f"{block}  ", Ink.ACCENT if chosen else Ink.FAINT))
            label = text.center(_CHIP_WIDTH - 2)
            numbers += Line(Span(label, Ink.ACCENT, True, Ground.CURSOR) if chosen else dim(label)) + Line("  ")
        return [bars, numbers]

    def _rollout_facts(self, width: int) -> Line:
        rollout = self.rollouts[self.rollout]
        parts = []
        scores = [other.score for other in self.rollouts if other.score is not None]
        if rollout.score is not None:
            above = rollout.score - fmean(scores)
            parts.append(Line(dim("score "), strong(f"{rollout.score:.4g}"), dim(f" ({above:+.2f} to the mean)")))
        if self._tokens:
            trained = sum(token.trained for token in self._tokens)
            parts.append(Line(formatting.count(len(self._tokens)), dim(" tokens, "), f"{trained}", dim(" trained")))
        if rollout.finish_reason:
            cut = rollout.finish_reason == "length"
            parts.append(Line(dim("finish "), Span(visible(rollout.finish_reason), Ink.WARN if cut else Ink.TEXT)))
        parts += [Line(dim(f"{visible(name)} "), formatting.score(value)) for name, value in rollout.parts.items()]
        return join_that_fit(parts, width, "   ")
