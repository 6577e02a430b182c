"""Where searched words stand among the tokens of a rollout. A word may begin and end within a token."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from atropos_tui.ui.views.tokens import Tokens


class TokenHits:
    """The hits of a search in the text of all tokens; none where no tokenizer could decode them."""

    def __init__(self, tokens: Tokens, searched: re.Pattern[str]) -> None:
        self._texts = tokens.texts
        pieces = tokens.decoded
        # Of each token, and of the end: the place of its first character in the text of all.
        self._begins = [0, *accumulate(map(len, pieces))]
        self._hits = [found.span() for found in searched.finditer("".join(pieces))]
        self._begins_of_hits = [begin for begin, _ in self._hits]
        # Of each hit: the token in which it begins, and where in that.
        self.places = [self._place(begin) for begin in self._begins_of_hits]

    def __len__(self) -> int:
        return len(self._hits)

    def within(self, token: int) -> list[tuple[int, int]]:
        """The parts of a token's shown text, as start and end, that belong to hits."""
        begin, end = self._begins[token], self._begins[token + 1]
        if begin == end:
            return self._around(token, begin)
        parts = []
        at = max(0, bisect_right(self._begins_of_hits, begin) - 1)
        while at < len(self._hits) and self._begins_of_hits[at] < end:
            first, last = self._hits[at]
            if last > begin:
                parts.append((max(first, begin) - begin, min(last, end) - begin))
            at += 1
        return parts

    def _place(self, begin: int) -> tuple[int, int]:
        token = bisect_right(self._begins, begin) - 1
        return token, begin - self._begins[token]

    def _around(self, token: int, place: int) -> list[tuple[int, int]]:
        """All of the stand-in of a token without text, where the hit goes on behind it."""
        at = bisect_right(self._begins_of_hits, place) - 1
        inside = at >= 0 and self._hits[at][0] < place < self._hits[at][1]
        return [(0, len(self._texts[token]))] if inside else []
