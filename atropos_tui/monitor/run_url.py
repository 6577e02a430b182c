"""The URL of a run, as people write it."""

from __future__ import annotations

from urllib.parse import urlsplit

from atropos_tui.errors import UsageError

SCHEMES = ("http://", "https://")


def checked_url(text: str) -> str:
    """The same text. Raises UsageError where it names no host and port that one could connect to."""
    remedy = "give http://HOST:PORT"
    if not text.startswith(SCHEMES):
        raise UsageError(f"{text!r} is no URL", remedy)
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and not any(character.isspace() for character in text) and parts.port != 0
    except ValueError as error:
        raise UsageError(f"{text!r} is no URL: {error}", remedy) from error
    if not usable:
        raise UsageError(f"{text!r} is no URL", remedy)
    return text
