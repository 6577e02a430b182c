"""What people type, as a query of SQLite's full-text search that cannot be malformed."""

from __future__ import annotations

import re

# A phrase in quotes, or a run of anything but blanks and quotes; a star at the end asks for words that begin so.
_TERM = re.compile(r'"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+)')


def match_expression(typed: str) -> str:
    """All words and phrases must be there. Empty when there is nothing that could be looked for.

    `foo*` finds words that begin with foo. Everything else is taken literally: the operators of FTS5 are words here.
    """
    terms = []
    for found in _TERM.finditer(typed):
        text = found["phrase"] if found["phrase"] is not None else found["word"]
        prefix = found["word"] is not None and text.endswith("*")
        text = text.rstrip("*") if prefix else text
        # A term of punctuation alone has no word for the index, and would match nothing.
        if any(character.isalnum() for character in text):
            terms.append(f'"{text}"' + ("*" if prefix else ""))
    return " ".join(terms)
