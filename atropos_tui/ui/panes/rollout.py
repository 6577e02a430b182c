"""One group, one rollout of it in full (or two side by side): messages, tokens under a lens, or what else is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.monitor.notes import Note
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join_that_fit, strong
from atropos_tui.ui.panes.pane import Pane
from atropos_tui.ui.phrases import waiting
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.views.facts import fact_lines
from atropos_tui.ui.views.messages import Reading, says
from atropos_tui.ui.views.rollout_head import group_facts, note_line, rollout_facts, score_chips
from atropos_tui.ui.views.rollout_text import View, messages_or_decoded, what_broke
from atropos_tui.ui.views.side_by_side import BETWEEN, SideBySide, half_width
from atropos_tui.ui.views.styled import hits_of
from atropos_tui.ui.views.text import Headed, Lines, Text
from atropos_tui.ui.views.token_hits import TokenHits
from atropos_tui.ui.views.token_view import MARGIN, Lens, TokenLayout, TokenView, legend, token_facts
from atropos_tui.ui.views.tokens import Tokens, first_difference

# Below this height the head gives up its blank lines and bars, so that there is room for the text.
_LOW = 20


class RolloutPane(Pane):
    """The cursor keys scroll; which rollout, view, lens and token are shown is asked for by the screen.

    Methods that may have nothing to do return why not, in words; empty when they did it.
    """

    title = "Rollout"

    def __init__(self) -> None:
        super().__init__()
        self.detail: GroupDetail | None = None
        self.failure = ""
        self.note = Note()
        self.view = View.MESSAGES
        self.lens = Lens.LOGPROB
        self.reading = Reading()
        self.rollout = 0
        self.beside: int | None = None
        self.token = 0
        self._before_facts = View.MESSAGES
        self._rank = 0
        self._first_line = 0
        # The hit that was gone to last, and whether the text is still to be scrolled there.
        self._hit: int | None = None
        self._goes_to_hit = False
        self._text: Text = Lines(())
        self._text_room = 1
        self._text_key: tuple[object, ...] = ()
        self._goes_to_token = False
        self._tokens: dict[int, Tokens] = {}
        self._layouts: dict[tuple[int, int], TokenLayout] = {}
        self._hits_among: dict[int, TokenHits | None] = {}

    @property
    def rollouts(self) -> Sequence[RolloutDetail]:
        return self.detail.rollouts if self.detail else ()

    @property
    def tokens(self) -> Tokens | None:
        """Those of the chosen rollout; None where it has none."""
        return self._tokens_of(self.rollout) if self.rollouts and self.rollouts[self.rollout].tokens else None

    # -- which rollout

    def open_group(self, detail: GroupDetail) -> None:
        """Show a group, at the first rollout that says the searched words, or at the number that was shown before."""
        self.detail, self.failure = detail, ""
        self.beside = None
        self._layouts.clear()
        self._tokens.clear()
        self._hits_among.clear()
        self._text_key = ()
        rollout = min(self.rollout, max(0, len(detail.rollouts) - 1))
        if self.reading.words and detail.rollouts and not says(detail.rollouts[rollout].messages, self.reading.words):
            saying = (i for i, other in enumerate(detail.rollouts) if says(other.messages, self.reading.words))
            rollout = next(saying, rollout)
        self._to_rollout(rollout)

    def close_group(self) -> None:
        """Show none: there is none to choose."""
        self.detail, self.failure = None, ""
        self.redraw()

    def fail(self, why: str) -> None:
        """The group could not be loaded."""
        self.detail, self.failure = None, why
        self.redraw()

    def step_to_rollout(self, by: int) -> str:
        if len(self.rollouts) < 2:
            return self._why_one()
        self._to_rollout((self.rollout + by) % len(self.rollouts))
        return ""

    def to_extreme(self, sign: int) -> str:
        """The rollout with the highest (+1) or lowest (-1) score."""
        if not self.rollouts:
            return "there is no rollout"
        if all(rollout.score is None for rollout in self.rollouts):
            return "no rollout of this group has a score"
        self._to_rollout(self._extreme(sign))
        return ""

    def compare(self) -> str:
        """Beside this rollout the best one, or the worst if this is the best; asked again, this one alone."""
        if self.beside is not None:
            self.beside = None
        elif len(self.rollouts) < 2:
            return self._why_one()
        else:
            best = self._extreme(1)
            self.beside = best if best != self.rollout else self._extreme(-1)
            if self.beside == self.rollout:
                self.beside = (self.rollout + 1) % len(self.rollouts)
            self._to_first_difference()
        self.redraw()
        return ""

    def step_beside(self) -> str:
        """Compare with the next rollout."""
        if self.beside is None:
            return "no two rollouts are compared: c first"
        self.beside = (self.beside + 1) % len(self.rollouts)
        if self.beside == self.rollout and len(self.rollouts) > 2:
            self.beside = (self.beside + 1) % len(self.rollouts)
        self.redraw()
        return ""

    # -- how it is shown

    def next_view(self) -> None:
        self._show_view(View.TOKENS if self.view is View.MESSAGES else View.MESSAGES)

    def toggle_facts(self) -> None:
        if self.view is View.FACTS:
            self._show_view(self._before_facts)
        else:
            self._before_facts = self.view
            self._show_view(View.FACTS)

    def next_lens(self) -> None:
        lenses = list(Lens)
        self.lens = lenses[(lenses.index(self.lens) + 1) % len(lenses)]
        if self.view is View.TOKENS:
            self.redraw()
        else:
            self._show_view(View.TOKENS)

    def toggle_reasoning(self) -> None:
        self._read(replace(self.reading, unfolded=not self.reading.unfolded))

    def toggle_markdown(self) -> None:
        self._read(replace(self.reading, markdown=not self.reading.markdown))

    def mark_words(self, words: tuple[str, ...]) -> None:
        """Mark these words in messages and tokens, and go to the first."""
        if words != self.reading.words:
            self.reading = replace(self.reading, words=words)
            self._hits_among.clear()
            self._go_to_first_hit()
            self.redraw()

    # -- places in the text

    def step_to_turn(self, by: int) -> str:
        """The next message (or the one before); after the last one the first again."""
        turns = self._text.turns
        if self.view is not View.MESSAGES or not turns:
            return "turns are in the messages: v"
        number = self._text.turn_at(self._first_line)
        if by < 0 and self._first_line > turns[number]:
            number += 1  # to the beginning of the one that is shown
        elif by > 0 and self._at_end:
            number = -1
        self._go_to_line(turns[(number + by) % len(turns)])
        return ""

    def step_to_hit(self, by: int) -> str:
        """The next line with a searched word; among the tokens of one rollout the next such word, with the cursor."""
        hits = self._text.hits
        if not hits:
            return "no searched word stands here" if self.reading.words else "no words are searched: / first"
        current = self._hit if self._hit is not None else -1 if by > 0 else 0
        self._hit = (current + by) % len(hits)
        self._cursor_to_hit()
        self._go_to_line(hits[self._hit] - self._text_room // 3)
        return ""

    def _cursor_to_hit(self) -> None:
        """Put the token cursor on the hit. Where two rollouts are compared it stays: it is one for both."""
        if self._hit is None or self.view is not View.TOKENS or self.beside is not None:
            return
        found = self._hits_of(self.rollout)
        if found is not None:
            self.token, _ = found.places[self._hit % len(found)]

    def step_to_token(self, by: int) -> str:
        tokens = self.tokens
        if tokens is None:
            return _NO_TOKENS
        self._to_token(max(0, min(len(tokens) - 1, self.token + by)))
        return ""

    def to_least_likely(self) -> str:
        """The least likely token; asked again from there, the one that follows it."""
        tokens = self.tokens
        if tokens is None:
            return _NO_TOKENS
        order = tokens.least_likely
        if not order:
            return "the environment gave no logprobs (inference_logprobs)"
        self._rank = (self._rank + 1) % len(order) if order[self._rank : self._rank + 1] == [self.token] else 0
        self._to_token(order[self._rank])
        return ""

    def to_mask_edge(self) -> str:
        """The next token at which the mask changes; after the last one the first again."""
        tokens = self.tokens
        if tokens is None:
            return _NO_TOKENS
        edges = tokens.mask_edges
        if not edges:
            return "the mask has no edge: all tokens are trained, or none"
        self._to_token(next((edge for edge in edges if edge > self.token), edges[0]))
        return ""

    def to_first_difference(self) -> str:
        """Where the two compared rollouts part."""
        if self.beside is None:
            return "no two rollouts are compared: c first"
        if self.tokens is None:
            return _NO_TOKENS
        self._to_first_difference()
        self._to_token(self.token)
        return ""

    def move_cursor(self, by: int) -> None:
        self._go_to_line(self._first_line + by)

    # -- drawing

    def numbers(self, room: int) -> Line:
        if not self.rollouts:
            return Line()
        shown = [Line(dim(self.lens if self.view is View.TOKENS else self.view))]
        if self.view is View.MESSAGES and self.reading.markdown:
            shown.append(Line(dim("markdown")))
        shown.append(Line(strong(f"{self.rollout + 1}/{len(self.rollouts)}")))
        return join_that_fit(shown, room, " · ")

    def body(self, width: int, height: int) -> list[Line]:
        if self.failure:
            return [Line(Span(visible(self.failure), Ink.BAD))]
        if self.detail is None:
            return [waiting("choose a group")]
        head = self._head(self.detail, width, height < _LOW)
        self._text_room = max(1, height - len(head) - 1)
        self._lay_out(self.detail, width)
        if self._goes_to_token:
            self._scroll_to_token()
        self._first_line = max(0, min(self._first_line, len(self._text) - self._text_room))
        last = min(len(self._text), self._first_line + self._text_room)
        return [*head, self._rule(width, last), *(self._text[index] for index in range(self._first_line, last))]

    def _head(self, detail: GroupDetail, width: int, low: bool) -> list[Line]:
        row = detail.row
        head = [group_facts(row, self.moment.since(row.at), width)]
        if self.view is not View.FACTS:
            head.append(Line(dim("item "), visible(row.item)).fit(width))
        if self.note.bookmarked or self.note.text:
            head.append(note_line(self.note))
        if not self.rollouts:
            return head
        chips = score_chips(self.rollouts, self.rollout, self.beside, width)
        head += chips[1:] if low else [Line(), *chips, Line()]
        head.append(self._facts(width))
        tokens = self.tokens
        if self.view is View.TOKENS and tokens is not None:
            head += [legend(self.lens, tokens), token_facts(tokens[self.token], len(tokens), width, self.lens)]
        return head

    def _facts(self, width: int) -> Line:
        """Of the rollout, or of both that are compared."""
        if self.beside is None:
            return rollout_facts(self.rollouts[self.rollout], self.rollouts, self._tokens_of(self.rollout), width)
        room = half_width(width)
        left, right = (self._numbered_facts(i, room) for i in (self.rollout, self.beside))
        return left.fit(room) + BETWEEN + right

    def _numbered_facts(self, index: int, width: int) -> Line:
        """Which of the rollouts it is that stands below: the chip of one may be out of sight."""
        number = Line(strong(f"{index + 1}", Ink.ACCENT), " ")
        facts = rollout_facts(self.rollouts[index], self.rollouts, self._tokens_of(index), width - number.width)
        return number + facts

    def _rule(self, width: int, last: int) -> Line:
        """Between head and text; says which lines are shown where not all are, and where one is among them."""
        where = []
        if self._text.hits:
            number = "–" if self._hit is None else str(self._hit + 1)
            where.append(f"hit {number} of {formatting.count(len(self._text.hits))}")
        if self.view is View.MESSAGES and self._text.turns and len(self._text) > self._text_room:
            where.append(f"turn {self._text.turn_at(self._first_line) + 1}/{len(self._text.turns)}")
        if len(self._text) > self._text_room:
            where.append(f"lines {self._first_line + 1}–{last} of {formatting.count(len(self._text))}")
        if not where:
            return Line(faint("─" * width))
        told = f" {' · '.join(where)} "
        return Line(faint("─" * max(0, width - len(told) - 2)), dim(told), faint("──"))

    @property
    def _at_end(self) -> bool:
        return self._first_line >= len(self._text) - self._text_room

    def _why_one(self) -> str:
        return "this group has one rollout" if self.rollouts else "there is no rollout"

    def _extreme(self, sign: int) -> int:
        scores = ((rollout.score, index) for index, rollout in enumerate(self.rollouts))
        known = [(score, index) for score, index in scores if score is not None and not math.isnan(score)]
        return max(known, key=lambda pair: (pair[0] * sign, -pair[1]), default=(0.0, self.rollout))[1]

    def _tokens_of(self, index: int) -> Tokens:
        if index not in self._tokens:
            self._tokens[index] = Tokens(self.rollouts[index])
        return self._tokens[index]

    def _to_first_difference(self) -> None:
        if self.beside is not None:
            self.token = first_difference(self._tokens_of(self.rollout), self._tokens_of(self.beside))

    def _show_view(self, view: View) -> None:
        self.view = view
        self._first_line = 0
        self._go_to_first_hit()
        self.redraw()

    def _read(self, reading: Reading) -> None:
        """Read in another way, from the same message on."""
        turns = self._text.turns
        turn = self._text.turn_at(self._first_line)
        self.reading = reading
        if self.view is View.MESSAGES and turns and self._first_line:
            below = self._first_line - turns[turn]
            self.redraw()
            if turn < len(self._text.turns):
                self._go_to_line(self._text.turns[turn] + below)
        self.redraw()

    def _to_rollout(self, index: int) -> None:
        self.rollout = index
        tokens = self.tokens
        self.token = tokens.first_trained if tokens is not None else 0
        self._rank, self._first_line = 0, 0
        self._go_to_first_hit()
        self.redraw()

    def _go_to_first_hit(self) -> None:
        self._hit, self._goes_to_hit = (0, True) if self.reading.words else (None, False)

    def _to_token(self, index: int) -> None:
        if self.view is not View.TOKENS:
            self._hit, self._goes_to_hit = None, False
        self.view, self.token, self._goes_to_token = View.TOKENS, index, True
        self.redraw()

    def _scroll_to_token(self) -> None:
        """Where the token cursor is not among the lines that are shown."""
        self._goes_to_token = False
        line = self._text.cursor_line
        if line is not None and not self._first_line <= line < self._first_line + self._text_room - 1:
            self._first_line = line - self._text_room // 2

    def _go_to_line(self, line: int) -> None:
        self._first_line = max(0, min(line, len(self._text) - self._text_room))
        self.redraw()

    def _lay_out(self, detail: GroupDetail, width: int) -> None:
        """Make the lines of the chosen text, unless they are there from the last time."""
        if self._goes_to_hit and self.rollouts:
            self._cursor_to_hit()
        how = self.reading if self.view is View.MESSAGES else (self.lens, self.token, self.reading.words)
        key = (detail.row.group_id, len(detail.rollouts), self.rollout, self.beside, self.view, how, width)
        if self.view is not View.FACTS and key == self._text_key:
            return
        self._text_key = key
        broke = what_broke(detail, width)
        if self.view is View.FACTS:
            servers = [urlsplit(server.url).netloc or server.url for server in self.moment.snapshot.inference.servers]
            self._text = Lines([*broke, *fact_lines(detail, self.rollout, servers, self.moment.now, width)])
        elif not self.rollouts:
            self._text = Lines(broke)
        elif self.beside is None:
            text = self._one(self.rollout, width)
            self._text = Headed(broke, text) if broke else text
        else:
            left, right = (self._one(index, half_width(width)) for index in (self.rollout, self.beside))
            self._text = SideBySide(left, right, width)
        if self._goes_to_hit and self._hit is not None and self._text.hits:
            self._first_line = max(0, self._text.hits[self._hit % len(self._text.hits)] - self._text_room // 3)
            self._goes_to_hit = False

    def _one(self, index: int, width: int) -> Text:
        if self.view is View.MESSAGES:
            return messages_or_decoded(self.rollouts[index], width, self.reading)
        if not self.rollouts[index].tokens:
            return Lines([waiting("this rollout has no tokens")])
        found = self._hits_of(index)
        layout = self._token_layout(index, width if found is None else width - MARGIN)
        return TokenView(layout, self.lens, self.token, found)

    def _hits_of(self, index: int) -> TokenHits | None:
        """The searched words among the tokens of a rollout; None where none stands there."""
        if index not in self._hits_among:
            searched = hits_of(self.reading.words)
            found = TokenHits(self._tokens_of(index), searched) if searched is not None else None
            self._hits_among[index] = found or None
        return self._hits_among[index]

    def _token_layout(self, index: int, width: int) -> TokenLayout:
        """Made once: going from token to token must not lay out a hundred thousand of them anew."""
        if (index, width) not in self._layouts:
            self._layouts[index, width] = TokenLayout(self._tokens_of(index), width)
        return self._layouts[index, width]


_NO_TOKENS = "this rollout has no tokens"
