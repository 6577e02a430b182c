"""Two texts beside each other that scroll as one: messages of the same number begin on the same line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import zip_longest

from atropos_tui.ui.ink import Ink, Line, Span
from atropos_tui.ui.views.text import Text

BETWEEN = Line(Span(" │ ", Ink.FAINT))


def half_width(width: int) -> int:
    """The cells that each of two texts has on `width` cells."""
    return max(1, (width - BETWEEN.width) // 2)


class SideBySide(Text):
    def __init__(self, left: Text, right: Text, width: int) -> None:
        self._texts = (left, right)
        self._half = half_width(width)
        starts: list[int] = []
        # Of each message: where it begins and ends in either text.
        self._parts: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._length = 0
        for left_part, right_part in zip_longest(_parts(left), _parts(right), fillvalue=(0, 0)):
            starts.append(self._length)
            self._parts.append((left_part, right_part))
            self._length += max(end - start for start, end in (left_part, right_part))
        self.turns = self._starts = starts
        self.hits = sorted({self._aligned(side, hit) for side in (0, 1) for hit in self._texts[side].hits})

    @property
    def cursor_line(self) -> int | None:
        """That of the text at the left."""
        line = self._texts[0].cursor_line
        return None if line is None else self._aligned(0, line)

    def __len__(self) -> int:
        return self._length

    def line(self, index: int) -> Line:
        number = bisect_right(self._starts, index) - 1
        offset = index - self._starts[number]
        left, right = (
            text[start + offset] if start + offset < end else Line()
            for text, (start, end) in zip(self._texts, self._parts[number], strict=True)
        )
        return left.fit(self._half) + BETWEEN + right.fit(self._half)

    def _aligned(self, side: int, line: int) -> int:
        """Where a line of one of the texts is shown."""
        number = self._texts[side].turn_at(line)
        return self._starts[number] + line - self._parts[number][side][0]


def _parts(text: Text) -> Sequence[tuple[int, int]]:
    """From the beginning of each message to that of the next."""
    starts = [0, *text.turns[1:]]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))
