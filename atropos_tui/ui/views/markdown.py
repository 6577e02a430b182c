"""The little of Markdown that makes replies easier to read: headings, emphasis, code, lists, quotes, rules.

Line by line, so that a text of any length is as quick as plain text. What is not understood is shown as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from atropos_tui.ui.ink import Ink
from atropos_tui.ui.views.styled import Style, Styled

_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"#{1,6}\s+(?P<text>.*?)\s*#*$")
_BULLET = re.compile(r"(?P<indent>\s*)[-*+]\s+(?P<text>.*)$")
_QUOTE = re.compile(r"\s*>\s?(?P<text>.*)$")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*$")
_INLINE = re.compile(
    r"(?P<code>`[^`]+`)|(?P<bold>\*\*[^*]+\*\*|__[^_]+__)|(?P<italic>(?<![\w*])\*[^*\s][^*]*\*(?![\w*]))"
)
_RULE_WIDTH = 24


def markdown_lines(lines: Iterable[str]) -> Iterator[Styled]:
    """`lines` are visible text (`text_safety`); one styled line for each, but for the fences around code."""
    in_code = False
    for line in lines:
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            yield Styled(f"  {line}", Ink.ACCENT)
        else:
            yield _styled(line)


def _styled(line: str) -> Styled:
    if _RULE.match(line):
        return Styled("─" * _RULE_WIDTH, Ink.FAINT)
    if (found := _HEADING.match(line)) is not None:
        text = _inline(found["text"]).text
        return Styled(text, styles=(Style(0, len(text), Ink.TEXT, bold=True),))
    if (found := _BULLET.match(line)) is not None:
        return _inline(found["text"], before=f"{found['indent']}• ")
    if (found := _QUOTE.match(line)) is not None:
        return Styled(f"│ {_inline(found['text']).text}", Ink.DIM)
    return _inline(line)


def _inline(line: str, before: str = "") -> Styled:
    """Emphasis and code without their marks."""
    text, styles, at = before, [], 0
    for found in _INLINE.finditer(line):
        text += line[at : found.start()]
        marks = 2 if found["bold"] else 1
        inside = found[0][marks:-marks]
        ink = Ink.ACCENT if found["code"] else Ink.TEXT
        styles.append(Style(len(text), len(text) + len(inside), ink, bold=not found["code"]))
        text += inside
        at = found.end()
    return Styled(text + line[at:], styles=tuple(styles))
