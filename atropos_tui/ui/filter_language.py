"""The filter of the trajectory list: `score<0.5 outcome:skipped reason:identical step>100 "text" -took>5`.

All terms must hold; a minus before one turns it round. Words without a field are looked for in the item and the error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.snapshot import EndedRow

_TERM = re.compile(
    r"""(?P<minus>-?)(?:
        (?P<field>[a-z_]+)(?P<relation><=|>=|!=|[<>=:])(?P<value>"[^"]*"|\S+)
        | (?P<text>"[^"]*"|\S+)
    )(?:\s+|$)""",
    re.VERBOSE,
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    ":": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_NUMBERS: dict[str, Callable[[EndedRow], float | None]] = {
    "score": lambda row: fmean(row.scores) if row.scores else None,
    "best": lambda row: max(row.scores, default=None),
    "worst": lambda row: min(row.scores, default=None),
    "tokens": lambda row: fmean(row.completion_tokens) if row.completion_tokens else None,
    "step": lambda row: row.step,
    "took": lambda row: row.seconds,
    "group": lambda row: row.group_id,
    "weights": lambda row: row.weight_version,
}
_WORDS: dict[str, Callable[[EndedRow], str]] = {
    "outcome": lambda row: row.outcome,
    "reason": lambda row: row.reason,
    "split": lambda row: row.split,
    "item": lambda row: row.item,
    "error": lambda row: row.error,
}

Condition = Callable[[EndedRow], bool]


@dataclass(frozen=True, slots=True)
class Filter:
    """`text` as it was written. `outcome` is set when only groups of that one can match: others need not be fetched."""

    text: str = ""
    conditions: tuple[Condition, ...] = ()
    outcome: Outcome | None = None

    def __call__(self, row: EndedRow) -> bool:
        return all(condition(row) for condition in self.conditions)


def parse_filter(text: str) -> Filter:
    """Read a filter. Raises UsageError that names the term, what is wrong with it, and what would be right."""
    conditions: list[Condition] = []
    outcome: Outcome | None = None
    rest = text.strip()
    while rest:
        term = _TERM.match(rest)
        if term is None:
            raise UsageError(f"cannot read {rest!r}", 'terms look like score<0.5, outcome:skipped or "text"')
        condition = _condition(term)
        negated = bool(term["minus"])
        conditions.append(_negated(condition) if negated else condition)
        if term["field"] == "outcome" and not negated and term["value"] in set(Outcome):
            outcome = Outcome(term["value"])
        rest = rest[term.end() :]
    return Filter(text.strip(), tuple(conditions), outcome)


def _condition(term: re.Match[str]) -> Condition:
    if term["field"] is None:
        return _contains(term["text"].strip('"'))
    if term["field"] in _NUMBERS:
        return _number_condition(term["field"], term["relation"], term["value"])
    if term["field"] in _WORDS:
        return _word_condition(term["field"], term["relation"], term["value"].strip('"'))
    raise UsageError(f"there is no field {term['field']!r}", f"the fields are {', '.join((*_NUMBERS, *_WORDS))}")


def _number_condition(field: str, relation: str, value: str) -> Condition:
    try:
        wanted = float(value)
    except ValueError:
        raise UsageError(f"{field} needs a number, not {value!r}", f"for example {field}>1") from None
    of, holds = _NUMBERS[field], _COMPARE[relation]

    def condition(row: EndedRow) -> bool:
        number = of(row)
        return number is not None and holds(number, wanted)

    return condition


def _word_condition(field: str, relation: str, value: str) -> Condition:
    """The beginning of the word is enough, except in longer texts, where any part is."""
    if relation not in (":", "="):
        raise UsageError(f"{field} is a word", f"write {field}:{value}")
    of, wanted = _WORDS[field], value.casefold()
    if field in ("item", "error"):
        return lambda row: wanted in of(row).casefold()
    return lambda row: of(row).startswith(wanted)


def _contains(text: str) -> Condition:
    wanted = text.casefold()
    return lambda row: wanted in row.item.casefold() or wanted in row.error.casefold()


def _negated(condition: Condition) -> Condition:
    return lambda row: not condition(row)
