"""What all texts of a rollout are to the pane that scrolls through them: lines, made when they are shown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import overload

from atropos_tui.ui.ink import Line


class Text(Sequence[Line]):
    """`turns` are the lines where messages begin, `hits` those where a searched word stands."""

    turns: Sequence[int] = ()
    hits: Sequence[int] = ()

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self.line(number) for number in range(*index.indices(len(self)))]
        return self.line(index)

    @property
    def cursor_line(self) -> int | None:
        """The line of what is under the cursor; None where the text has none."""
        return None

    def line(self, index: int) -> Line:
        raise NotImplementedError

    def turn_at(self, line: int) -> int:
        """The number of the message, from 0, that this line belongs to."""
        return max(0, bisect_right(self.turns, line) - 1)


class Lines(Text):
    """A text that is short enough to be made at once."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, index: int) -> Line:
        return self._lines[index]


class Headed(Text):
    """A text below a few lines that belong to all of its group."""

    def __init__(self, head: Sequence[Line], text: Text) -> None:
        self._head = head
        self._text = text
        self.turns = [turn + len(head) for turn in text.turns]
        self.hits = [hit + len(head) for hit in text.hits]

    @property
    def cursor_line(self) -> int | None:
        below = self._text.cursor_line
        return None if below is None else below + len(self._head)

    def __len__(self) -> int:
        return len(self._head) + len(self._text)

    def line(self, index: int) -> Line:
        return self._head[index] if index < len(self._head) else self._text[index - len(self._head)]
