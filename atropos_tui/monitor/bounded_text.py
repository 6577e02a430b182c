"""Text from environments, models and servers, made safe to keep and to send."""

from __future__ import annotations

ITEM_LENGTH = 200
ERROR_LENGTH = 300
BODY_LENGTH = 4_000
TRACEBACK_LENGTH = 16_000


def bounded_text(text: str, limit: int) -> str:
    """The first `limit` characters; lone surrogates, which UTF-8 has no form for, are written as escapes."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _encodable(text)


def bounded_tail(text: str, limit: int) -> str:
    """The last `limit` characters: of a traceback the end names the cause."""
    if len(text) > limit:
        text = "…" + text[1 - limit :]
    return _encodable(text)


def one_line(text: str, limit: int) -> str:
    """Bounded, with every run of white space made one blank."""
    return bounded_text(" ".join(text[: 4 * limit].split()), limit)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text
