"""What the locale says of the characters that the terminal can show."""

from __future__ import annotations

from collections.abc import Mapping

# In the order in which they count.
_LOCALE_SETTINGS = ("LC_ALL", "LC_CTYPE", "LANG")


def locale_of(environ: Mapping[str, str]) -> str:
    """The setting that counts, as in `LC_ALL=C`; empty where no locale is set."""
    return next((f"{name}={environ[name]}" for name in _LOCALE_SETTINGS if environ.get(name)), "")


def locale_speaks_unicode(environ: Mapping[str, str]) -> bool:
    """Whether the locale's encoding has all characters. Where no locale is set, as in many containers, it has.

    Python itself no longer tells: in the C locale it takes UTF-8 all the same.
    """
    named = locale_of(environ).partition("=")[2]
    return not named or "utf" in named.lower()
