"""How numbers are written, in one place: counts, rates, ages, durations, bytes, scores, shares."""

from __future__ import annotations

import math


def count(number: int) -> str:
    """`1,432`."""
    return f"{number:,}"


def short_count(number: float) -> str:
    """At most five characters: `812`, `9.1k`, `43k`, `1.2M`."""
    return _scaled(number, 1000, ("", "k", "M", "G", "T"))


def size(number: float) -> str:
    """Bytes: `812 B`, `9.1 kB`, `43 MB`."""
    return _scaled(number, 1000, (" B", " kB", " MB", " GB", " TB"))


def rate(per_second: float) -> str:
    """`4.1/s`; below one in ten seconds by the minute: `3/min`."""
    if per_second <= 0:
        return "0/s"
    if per_second < 0.1:
        return f"{per_second * 60:.2g}/min"
    if per_second < 10:
        return f"{per_second:.1f}/s"
    return f"{short_count(per_second)}/s"


def duration(seconds: float) -> str:
    """How long something took: `41ms`, `1.2s`, `48s`, `7m`, `3.1h`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    return age(seconds)


def age(seconds: float) -> str:
    """How long ago, in whole units so that it changes seldom: `4s`, `97s`, `12m`, `3.1h`, `2.4d`.

    A longer time never looks like a shorter one: there is no `1m` after `99s`.
    """
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{int(seconds)}s"
    if seconds < 6000:
        return f"{int(seconds / 60)}m"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f}h"
    return f"{seconds / 86_400:.1f}d"


def score(value: float) -> str:
    """Four or five characters: `0.74`, `-0.50`, `12.3`, `1.2k`; `nan` and `inf` as they are."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) < 9.995:
        return f"{value:.2f}".replace("-0.00", "0.00")
    if abs(value) < 99.95:
        return f"{value:.1f}"
    return _scaled(value, 1000, ("", "k", "M", "G", "T"))


def exact(value: float) -> str:
    """A value without needless digits, as for the place of a spike: `1`, `0.5`, `-0.25`."""
    return f"{value:.4g}"


def percent(share: float) -> str:
    """`0%`, `<1%`, `18%`."""
    if 0 < share < 0.01:
        return "<1%"
    return f"{share:.0%}"


def words(name: str) -> str:
    """A counted word as people read it: `identical_scores` → `identical scores`."""
    return name.replace("_", " ")


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 group`, `2 groups`; `nouns` where an s is not enough."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {nouns or noun + 's'}"


def _scaled(number: float, base: float, units: tuple[str, ...]) -> str:
    value = float(number)
    for unit in units:
        if abs(value) < base * 0.9995 or unit == units[-1]:
            digits = 0 if unit == units[0] or abs(value) >= 9.95 else 1
            return f"{value:.{digits}f}{unit}"
        value /= base
    raise AssertionError("unreachable")
