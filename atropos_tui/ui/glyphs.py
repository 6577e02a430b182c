"""ASCII instead of the glyphs of the chrome, for fonts and terminals that have no others.

It works on what is about to be painted, so that it reaches all widgets, Textual's own too. Every glyph is replaced by
as many ASCII characters as it takes cells, so that nothing moves.
"""

from __future__ import annotations

import os
from functools import cache

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from atropos_tui.errors import UsageError
from atropos_tui.locale_characters import locale_speaks_unicode

SETTING = "ATROPOS_TUI_ASCII"

# What is shown, and instead of what.
_ALIKE = {
    "-": "─╺╸╌┄–—−▔▃",
    "=": "━═‖▄",
    "|": "│┃║▌▐▎▏▍▋▊▕",
    ":": "┆▒",
    "+": "╭╮╰╯┴┬├┤┼╔╗╚╝┌┐└┘✓✔±",
    ">": "▸▶►→»›",
    "v": "▾▼↓",
    "^": "▲↑",
    "<": "◀◄←«‹",
    "*": "●◐◑◆▪•",
    "o": "○◌◇◔□▅",
    "#": "≠■▮▉█",
    "x": "✗✘×",
    "0": "∅",
    "@": "↻",
    "$": "↵",
    ".": "·░▂",
    "~": "…",
    "N": "¶",
    '"': "“”",
    "'": "‘’▀",
    "%": "▓",
    "_": "▁",
    "O": "▆",
    "8": "▇",
    " ": "\N{NO-BREAK SPACE}",
}
_GLYPHS = {glyph: shown for shown, glyphs in _ALIKE.items() for glyph in glyphs}
_BRAILLE = range(0x2800, 0x2900)


class AsciiGlyphs(LineFilter):
    """`strict` replaces the text of models too, where the terminal could not show any of it."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__()
        self._strict = strict

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        del background
        return [
            segment if segment.control or segment.text.isascii()
            else Segment(self._ascii(segment.text), segment.style)
            for segment in segments
        ]  # fmt: skip

    def _ascii(self, text: str) -> str:
        return "".join(map(_shown_strictly if self._strict else _shown, text))


def wants_ascii(asked: bool | None, configured: bool | None = None) -> AsciiGlyphs | None:
    """What to paint through: as asked for, else as the setting in the environment says, else as configured, else as the
    locale needs.

    Raises UsageError for a setting that is neither yes nor no.
    """
    speaks_unicode = locale_speaks_unicode(os.environ)
    if asked is None:
        setting = os.environ.get(SETTING, "").lower()
        if setting not in ("", *_YES, *_NO):
            raise UsageError(f"{SETTING} is {setting!r}", "set it to 1 or 0")
        asked = setting in _YES if setting else configured
    if asked is None:
        asked = not speaks_unicode
    return AsciiGlyphs(strict=not speaks_unicode) if asked else None


_YES, _NO = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


@cache
def _shown(character: str) -> str:
    if character in _GLYPHS:
        return _GLYPHS[character]
    if ord(character) in _BRAILLE:
        return _dots(ord(character) - _BRAILLE.start)
    return character


@cache
def _shown_strictly(character: str) -> str:
    shown = _shown(character)
    return shown if shown.isascii() else "?" * get_character_cell_size(character)


def _dots(bits: int) -> str:
    """A cell of a chart by where its dots are: above, in the middle, below."""
    rows = [row for row, mask in enumerate((0x09, 0x12, 0x24, 0xC0)) if bits & mask]
    if not rows:
        return " "
    return ("'", "-", "-", ".")[round(sum(rows) / len(rows))]
