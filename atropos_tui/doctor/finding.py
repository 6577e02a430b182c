"""What one examination found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """GOOD needs nothing; LIMITED works with less; BAD keeps the screen from working."""

    GOOD = "good"
    LIMITED = "limited"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` was examined, what was `found`, and the `remedy` where something is to be gained by one."""

    what: str
    found: str
    verdict: Verdict = Verdict.GOOD
    remedy: str = ""


def good(what: str, found: str) -> Finding:
    return Finding(what, found)


def limited(what: str, found: str, remedy: str) -> Finding:
    return Finding(what, found, Verdict.LIMITED, remedy)


def bad(what: str, found: str, remedy: str) -> Finding:
    return Finding(what, found, Verdict.BAD, remedy)
