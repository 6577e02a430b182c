"""The messages of a rollout, turn by turn, as lines that are made when they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint
from atropos_tui.ui.text_safety import visible, visible_lines
from atropos_tui.ui.views.markdown import markdown_lines
from atropos_tui.ui.views.message_parts import Kind, Part, parts_of, sender
from atropos_tui.ui.views.styled import Styled, hits_of, with_hits
from atropos_tui.ui.views.text import Text
from atropos_tui.ui.wrapping import wrapped, wrapped_ranges

_ROLE_INKS = {"system": Ink.DIM, "user": Ink.TEXT, "assistant": Ink.ACCENT, "tool": Ink.WARN}
_GUTTER = 2
_HINT_FROM = 44


@dataclass(frozen=True, slots=True)
class Reading:
    """How messages are read: with the reasoning unfolded, as Markdown, and which words are marked."""

    unfolded: bool = False
    markdown: bool = False
    words: tuple[str, ...] = ()


class _Row(NamedTuple):
    """A part of a line of text, behind a bar in the ink of its role."""

    bar: Span
    source: Styled
    start: int
    end: int

    def line(self) -> Line:
        if self.source.has_hit(self.start, self.end):
            return Line(Span(self.bar.text[:1], self.bar.ink), Span("»", Ink.WARN, bold=True)) + self._text
        return Line(self.bar) + self._text

    @property
    def _text(self) -> Line:
        return self.source.line(self.start, self.end)


Row: TypeAlias = Line | _Row


class MessageText(Text):
    """All messages in full: a heading with the role, then the text behind a bar."""

    def __init__(self, messages: Sequence[Mapping[str, Any]], width: int, reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self._searched = hits_of(self._reading.words)
        self._width = max(1, width - _GUTTER)
        self._rows: list[Row] = []
        turns: list[int] = []
        for number, message in enumerate(messages, start=1):
            if self._rows:
                self._rows.append(Line())
            turns.append(len(self._rows))
            self._rows += self._message(message, number, len(messages))
        self.turns = turns
        self.hits = [
            index
            for index, row in enumerate(self._rows)
            if isinstance(row, _Row) and row.source.hits and row.source.has_hit(row.start, row.end)
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def line(self, index: int) -> Line:
        row = self._rows[index]
        return row.line() if isinstance(row, _Row) else row

    def _message(self, message: Mapping[str, Any], number: int, many: int) -> Iterator[Row]:
        role = visible(str(message.get("role", "?")))
        ink = _ROLE_INKS.get(role, Ink.TEXT)
        yield Line(Span(role, ink, bold=True), faint(f"  {number}/{many}{sender(message)}"))
        bar = Span("▎ ", ink)
        for part in parts_of(message):
            match part.kind:
                case Kind.REASONING:
                    yield from self._reasoning(part, bar)
                case Kind.CALL:
                    yield Line(bar, Span(f"→ {visible(part.name)}", Ink.WARN, bold=True))
                    yield from self._rows_of(_plain(part.text, Ink.DIM), Span(f"{bar.text}  ", bar.ink))
                case Kind.NOTE:
                    yield from self._rows_of(_plain(part.text, Ink.DIM), bar)
                case Kind.TEXT if self._reading.markdown:
                    yield from self._rows_of(markdown_lines(visible_lines(part.text)), bar)
                case Kind.TEXT:
                    yield from self._rows_of(_plain(part.text, Ink.TEXT), bar)

    def _reasoning(self, part: Part, bar: Span) -> Iterator[Row]:
        """One line while it is folded; searched words unfold it."""
        words = formatting.plural(len(part.text.split()), "word")
        found = len(self._searched.findall(part.text)) if self._searched is not None else 0
        unfolded = self._reading.unfolded or found > 0
        hint = "" if unfolded or self._width < _HINT_FROM else " · o unfolds"
        yield Line(bar, dim(f"{'▾' if unfolded else '▸'} reasoning · {words}"), faint(hint))
        if unfolded:
            yield from self._rows_of(_plain(part.text, Ink.DIM), Span("┆ ", bar.ink))

    def _rows_of(self, lines: Iterator[Styled], bar: Span) -> Iterator[Row]:
        room = self._width - (len(bar.text) - _GUTTER)
        for line in lines:
            source = with_hits(line, self._searched)
            for start, end in wrapped_ranges(source.text, room):
                yield _Row(bar, source, start, end)


def says(messages: Sequence[Mapping[str, Any]], words: Iterable[str]) -> bool:
    """Whether the messages have any of these words, in what is shown of them."""
    searched = hits_of(words)
    return searched is not None and any(
        searched.search(part.text) for message in messages for part in parts_of(message)
    )


def prose_lines(text: str, width: int, ink: Ink) -> list[Line]:
    """Plain text such as a traceback."""
    return [Line(Span(part, ink)) for line in visible_lines(text.rstrip()) for part in wrapped(line, width)]


def _plain(text: str, ink: Ink) -> Iterator[Styled]:
    return (Styled(line, ink) for line in visible_lines(text))
