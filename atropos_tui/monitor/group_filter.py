"""The filter language: `score<0 outcome:skipped reason:identical step>100 len>500 finish:length item:… "text"`.

All terms must hold; a minus before one turns it round. Words without a field are looked for in the item, the error and
the messages. A query is read where it is typed and evaluated where the groups are: on rows, or by SQLite
(`run_file.group_conditions`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from types import MappingProxyType
from typing import Any, TypeAlias

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import (
    OPEN_OUTCOMES,
    DeliveredAs,
    FailReason,
    Outcome,
    RejectReason,
    RequeueReason,
    ScoreSplit,
    SkipReason,
)
from atropos_tui.monitor.snapshot import EndedRow


class Kind(StrEnum):
    """How the value of a term is compared."""

    NUMBER = "number"
    WORD = "word"
    TEXT = "text"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Field:
    """`words` are the values that a word may begin, none where any may come."""

    name: str
    kind: Kind
    help: str
    example: str
    words: tuple[str, ...] = ()


# What the screen calls a split, and what it is called in the ledger.
SPLIT_NAMES: Mapping[str, ScoreSplit] = MappingProxyType(
    {"too_easy": ScoreSplit.ALL_BEST, "too_hard": ScoreSplit.ALL_WORST}
)
_OUTCOMES = tuple(str(outcome) for outcome in Outcome if outcome not in OPEN_OUTCOMES)
_REASONS = tuple(
    str(reason) for reasons in (SkipReason, FailReason, RejectReason, DeliveredAs, RequeueReason) for reason in reasons
)

FIELDS = tuple(
    Field(*row)
    for row in (
        ("score", Kind.NUMBER, "mean score", "score<0"),
        ("best", Kind.NUMBER, "highest score", "best>=1"),
        ("worst", Kind.NUMBER, "lowest score", "worst=0"),
        ("len", Kind.NUMBER, "mean trained tokens", "len>500"),
        ("step", Kind.NUMBER, "trainer's step", "step>100"),
        ("took", Kind.NUMBER, "seconds it took", "took>60"),
        ("group", Kind.NUMBER, "its number", "group=17"),
        ("weights", Kind.NUMBER, "weights' version", "weights<=3"),
        ("outcome", Kind.WORD, "what became of it", "outcome:skipped", _OUTCOMES),
        ("reason", Kind.WORD, "why", "reason:identical", (*_REASONS, "http_")),
        ("split", Kind.WORD, "why scores are equal", "split:too_hard", (*SPLIT_NAMES, *map(str, ScoreSplit))),
        ("finish", Kind.WORD, "how a reply ended", "finish:length"),
        ("item", Kind.TEXT, "part of the item", "item:gsm8k"),
        ("error", Kind.TEXT, "part of the error", 'error:"no answer"'),
        ("bookmarked", Kind.MARK, "bookmarked by you", "bookmarked"),
        ("note", Kind.TEXT, "part of your note", "note:odd"),
    )
)
_BY_NAME = {field.name: field for field in FIELDS} | {"tokens": next(field for field in FIELDS if field.name == "len")}
# What is known of these is not with the run, but with who looks at it.
OF_THE_READER = frozenset({"bookmarked", "note"})

_TERM = re.compile(
    r"""(?P<minus>-?)(?:
        (?P<field>[a-z_]+)(?P<relation><=|>=|!=|[<>=:])(?P<value>"[^"]*"|\S+)
        | (?P<text>"[^"]*"|\S+)
    )(?:\s+|$)""",
    re.VERBOSE,
)
RELATIONS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
        "=": operator.eq, ":": operator.eq, "!=": operator.ne,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. `number` counts for numbers, `word` for all others.

    `field` is empty for words without one; the relation `*` then says that words may only begin so.
    """

    text: str
    field: str
    relation: str = ":"
    word: str = ""
    number: float = 0.0
    negated: bool = False

    def matches(self, row: EndedRow, says: Says) -> bool:
        """Whether it holds for a group; `says` tells whether its messages have a text."""
        return self._holds(row, says) != self.negated

    def _holds(self, row: EndedRow, says: Says) -> bool:
        if (number := _NUMBERS.get(self.field)) is not None:
            value = number(row)
            return value is not None and RELATIONS[self.relation](value, self.number)
        match self.field:
            case "outcome":
                return row.outcome.startswith(self.word)
            case "reason":
                return row.reason.startswith(self.word)
            case "split":
                return row.split in splits_of(self.word)
            case "finish":
                return any(reason.startswith(self.word) for reason in row.finishes)
            case "item":
                return self.word in row.item.casefold()
            case "error":
                return self.word in row.error.casefold()
            case _:
                return self.word in row.item.casefold() or self.word in row.error.casefold() or says(self.word)


Says: TypeAlias = Callable[[str], bool]
_NUMBERS: Mapping[str, Callable[[EndedRow], float | None]] = MappingProxyType(
    {
        "score": lambda row: fmean(row.scores) if row.scores else None,
        "best": lambda row: max(row.scores, default=None),
        "worst": lambda row: min(row.scores, default=None),
        "len": lambda row: fmean(row.completion_tokens) if row.completion_tokens else None,
        "step": lambda row: row.step,
        "took": lambda row: row.seconds,
        "group": lambda row: row.group_id,
        "weights": lambda row: row.weight_version,
    }
)


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read a filter. Raises UsageError that names the term, what is wrong with it, and what would be right."""
    return tuple(_term(found) for found in _found(text.strip()))


def sorted_rows(rows: Iterable[EndedRow], order: str) -> list[EndedRow]:
    """`rows`, which come newest first, in this order; those without a value at the end."""
    name, falling = order.removeprefix("-"), order.startswith("-")
    if name == "time":
        return list(rows) if falling else list(rows)[::-1]
    value = _ORDER_VALUES[name]
    known: list[EndedRow] = []
    unknown: list[EndedRow] = []
    for row in rows:
        (unknown if value(row) is None else known).append(row)
    return sorted(known, key=value, reverse=falling) + unknown


_ORDER_VALUES: Mapping[str, Callable[[EndedRow], Any]] = MappingProxyType(
    {
        **{name: _NUMBERS[name] for name in ("score", "len", "step", "took")},
        "outcome": lambda row: str(row.outcome),
        "reason": lambda row: row.reason,
    }
)


def splits_of(word: str) -> tuple[str, ...]:
    """The splits that a word may mean, by the ledger's names or by those on the screen."""
    names = {**SPLIT_NAMES, **{str(split): split for split in ScoreSplit}}
    return tuple(dict.fromkeys(str(split) for name, split in names.items() if name.startswith(word)))


def search_words(terms: Iterable[Term]) -> tuple[str, ...]:
    """The texts that are looked for in messages, as they were written but for case."""
    return tuple(term.word for term in terms if not term.field and not term.negated)


def _found(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            raise UsageError(f"cannot read {text[at:]!r}", 'terms look like score<0.5, outcome:skipped or "text"')
        yield found
        at = found.end()


def _term(found: re.Match[str]) -> Term:
    written, negated = found.group().strip(), bool(found["minus"])
    if found["field"] is None:
        text = found["text"].strip('"')
        if text == "bookmarked" and '"' not in found["text"]:
            return Term(written, "bookmarked", negated=negated)
        begins = found["text"].endswith("*")
        return Term(written, "", "*" if begins else ":", text.rstrip("*" if begins else "").casefold(), negated=negated)
    field = _BY_NAME.get(found["field"])
    if field is None:
        raise UsageError(f"there is no field {found['field']!r}", f"the fields are {', '.join(_BY_NAME)}")
    value = found["value"].strip('"')
    if field.kind is Kind.NUMBER:
        return Term(written, field.name, found["relation"], number=_number(field, value), negated=negated)
    if field.kind is Kind.MARK:
        raise UsageError(f"{field.name} has no value", f"write {field.name} or -{field.name}")
    if found["relation"] not in (":", "="):
        raise UsageError(f"{field.name} is a {field.kind}", f"write {field.name}:{found['value']}")
    word = value.casefold()
    if field.kind is Kind.WORD:
        word = word.replace(" ", "_")
        if field.words and not any(_begins(word, allowed) for allowed in field.words):
            raise UsageError(f"there is no {field.name} {value!r}", f"there are {', '.join(field.words)}")
    return Term(written, field.name, word=word, negated=negated)


def _begins(word: str, allowed: str) -> bool:
    """Whether it is the beginning of an allowed word; those with an open end, as `http_`, may go on."""
    return allowed.startswith(word) or (allowed.endswith("_") and word.startswith(allowed))


def _number(field: Field, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{field.name} needs a number, not {value!r}", f"for example {field.example}") from None
