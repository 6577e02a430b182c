"""Text from models, environments and servers is data: what a terminal would obey is shown instead.

Control characters, escape sequences, direction marks and zero-width characters become visible stand-ins of known
width, as `‹ESC›`. Markup needs no care: nothing on the screen parses it (see `ink`).
"""

from __future__ import annotations

import re
import unicodedata

TAB_WIDTH = 4
MOST_COMBINING_MARKS = 4

# What characters without a shape of their own are called; others are shown by their code point.
_CONTROLS = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI",
    "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
)  # fmt: skip
_NAMES = {
    **dict(enumerate(_CONTROLS)),
    0x007F: "DEL",
    0x009B: "CSI",
    0x00AD: "SHY",
    0x034F: "CGJ",
    0x061C: "ALM",
    0x180E: "MVS",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LS",
    0x2029: "PS",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
}

# Characters that take part in nothing but printing; text made of these alone is returned as it is.
_PLAIN = re.compile(r"[\x20-\x7e\u00a1-\u00ac\u00ae-\u02af\u0410-\u044f\u2013-\u2026\u2190-\u21ff\u2500-\u259f]*")
_HANGUL_FILLERS = frozenset({0x115F, 0x1160, 0x3164, 0xFFA0})


def visible(text: str) -> str:
    """`text` as one line in which every character shows and none is obeyed."""
    if _PLAIN.fullmatch(text):
        return text
    marks = {character for character in set(text) if unicodedata.category(character) in _MARKS}
    if not marks:
        return text.translate(_SHOWN)
    shown: list[str] = []
    at = 0
    # Of the marks that are there: a class of all of them is slow to match.
    for cluster in re.finditer(f"[^{''.join(marks)}]?[{''.join(marks)}]+", text, re.DOTALL):
        shown += (text[at : cluster.start()].translate(_SHOWN), _marked(cluster[0]))
        at = cluster.end()
    shown.append(text[at:].translate(_SHOWN))
    return "".join(shown)


def visible_lines(text: str) -> list[str]:
    """`text` by its line feeds, each line made `visible`; a carriage return before a line feed is left out."""
    return [visible(line.removesuffix("\r")) for line in text.split("\n")]


_MARKS = frozenset({"Mn", "Me"})


def _marked(cluster: str) -> str:
    shown: list[str] = []
    marks = 0
    for character in cluster:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        shown.append(_stand_in(character, marks, shown))
    return "".join(shown)


class _StandIns(dict[int, str]):
    """What stands for a character that is no mark, found out once: a text of a megabyte is gone through by C."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _stand_in(chr(code), 0, [])
        return shown


_SHOWN = _StandIns()


def _stand_in(character: str, marks: int, shown: list[str]) -> str:
    code = ord(character)
    if code == 0x09:
        return "→".ljust(TAB_WIDTH)
    if code == 0x0A:
        return "↵"
    if code in _NAMES:
        return f"‹{_NAMES[code]}›"
    if code in (0xFE0E, 0xFE0F) and shown and shown[-1] > "\xa0":
        return ""  # asks for another look of the symbol before it, and terminals disagree on the width of that
    category = unicodedata.category(character)
    if category in _MARKS:
        lone = not shown or not shown[-1]
        return f"‹U+{code:04X}›" if lone or marks > MOST_COMBINING_MARKS or _is_selector(code) else character
    if category in ("Cc", "Cf", "Cs", "Co", "Cn") or code in _HANGUL_FILLERS:
        return f"‹U+{code:04X}›"
    if category == "Zs" and code != 0x20:
        return " "
    return character


def _is_selector(code: int) -> bool:
    """Variation selectors can carry hidden bytes."""
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180D
