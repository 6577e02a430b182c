"""The line at the bottom in which a filter or a note is written, with what can be written above it."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from atropos_tui.errors import UsageError
from atropos_tui.monitor.group_filter import FIELDS, Field, parse_terms
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.widgets.canvas import Canvas
from atropos_tui.ui.wrapping import wrapped

_EXAMPLE_WIDTH = 18
_COLUMN_WIDTH = 39
_MOST_WORDS = 3


class EntryHelp(Canvas):
    """What can be written, or what is wrong with what is."""

    def __init__(self) -> None:
        super().__init__(id="entry-help")
        self.fault = ""
        self.for_filter = True

    def height_for(self, width: int) -> int:
        columns = max(1, width // _COLUMN_WIDTH)
        return 1 + -(-len(FIELDS) // columns) if self.for_filter else 1

    def draw(self, width: int, height: int) -> list[Line]:
        if not self.for_filter:
            return [self._first("a note for all who look at this run; an empty one is none", width)]
        columns = max(1, width // _COLUMN_WIDTH)
        rows = -(-len(FIELDS) // columns)
        column_width = (width - 1) // columns
        entries = [_entry(field, column_width - 1) for field in FIELDS]
        entries += [Line()] * (rows * columns - len(entries))
        lines = [
            self._first(
                'all must hold · -term turns one round · words, "a phrase", begin*: item, error, messages', width
            )
        ]
        for row in range(rows):
            cells = [entries[column * rows + row].fit(column_width - 1) for column in range(columns)]
            lines.append(Line(" ") + sum((cell + Line(" ") for cell in cells), Line()))
        return lines

    def _first(self, advice: str, width: int) -> Line:
        if self.fault:
            return Line(Span(f" ! {wrapped(visible(self.fault), width - 4)[0]}", Ink.BAD, bold=True))
        return Line(dim(f" {advice}"))


def _entry(field: Field, width: int) -> Line:
    """An example and what it is about; some of the words that are allowed, where there is room."""
    entry = Line(Span(field.example, Ink.ACCENT)).fit(_EXAMPLE_WIDTH) + Line(dim(field.help))
    words = Line(faint(f" {' '.join(field.words[:_MOST_WORDS])} …")) if field.words else Line()
    return entry + words if entry.width + words.width <= width else entry


class EntryBar(Vertical):
    """Hidden until something is asked for; the screen takes what is submitted."""

    def __init__(self) -> None:
        super().__init__(id="entry")
        self.help = EntryHelp()
        self.input = Input(id="filter", compact=True)
        self.input.cursor_blink = False

    def compose(self) -> ComposeResult:
        yield self.help
        yield self.input

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    @property
    def asks_for_filter(self) -> bool:
        return self.help.for_filter

    def ask(self, value: str, *, for_filter: bool, placeholder: str) -> None:
        self.help.for_filter, self.help.fault = for_filter, ""
        self.input.placeholder = placeholder
        self.input.value = value
        self.input.cursor_position = len(value)
        self.display = True
        self.help.styles.height = self.help.height_for(self.app.size.width)
        self.input.focus()
        self.help.redraw_all()

    def refuse(self, fault: str) -> None:
        """Say what is wrong, and stay open."""
        self.help.fault = fault
        self.help.redraw()

    def close(self) -> None:
        self.display = False

    def on_resize(self, event: events.Resize) -> None:
        self.help.styles.height = self.help.height_for(event.size.width)

    def on_input_changed(self, event: Input.Changed) -> None:
        """A filter is read while it is written; what is not finished need not be wrong, so only Enter complains."""
        if self.help.fault:
            self.refuse(what_is_wrong(event.value) if self.asks_for_filter else "")


def what_is_wrong(filter_text: str) -> str:
    """In one line, with what is allowed; empty for a filter that can be read."""
    try:
        parse_terms(filter_text)
    except UsageError as error:
        return str(error)
    return ""
