"""The filter language as conditions of SQLite, with the same meaning as on rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from atropos_tui.monitor.group_filter import Term, splits_of
from atropos_tui.monitor.run_file.search import match_expression

_LENGTH = "(SELECT avg(value) FROM json_each(g.completion_tokens))"
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {
        "score": "g.mean", "best": "g.best", "worst": "g.worst", "len": _LENGTH, "step": "g.step",
        "took": "g.seconds", "group": "g.group_id", "weights": "g.weight_version",
    }
)  # fmt: skip
_ORDERS: Mapping[str, str] = MappingProxyType(
    {
        "time": "g.place", "score": "g.mean", "len": _LENGTH, "step": "g.step", "took": "g.seconds",
        "outcome": "g.outcome", "reason": "g.reason",
    }
)  # fmt: skip


@dataclass(slots=True)
class Conditions:
    """Conditions on `groups g` that must all hold, and the values of their question marks."""

    parts: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, condition: str, *values: Any) -> None:
        self.parts.append(condition)
        self.values += values

    @property
    def where(self) -> str:
        return f"WHERE {' AND '.join(self.parts)}" if self.parts else ""


def add_functions(database: sqlite3.Connection) -> None:
    """What SQLite lacks: to find text whatever its case, beyond ASCII."""
    database.create_function("has_text", 2, lambda text, word: word in text.casefold(), deterministic=True)


def add_terms(conditions: Conditions, terms: Sequence[Term], text_parts: Sequence[int]) -> None:
    """`text_parts` are the numbers of the full-text indexes."""
    for term in terms:
        part = Conditions()
        _add_term(part, term, text_parts)
        # A comparison with nothing is neither true nor false in SQL; here it is false, and its contrary true.
        holds = f"coalesce({part.parts[0]}, 0)"
        conditions.add(f"NOT {holds}" if term.negated else holds, *part.values)


def add_numbers(conditions: Conditions, only: Collection[int] | None, but: Collection[int]) -> None:
    """Only these groups, and not those. The numbers are integers, so they may stand in the text."""
    if only is not None:
        conditions.add(f"g.group_id IN ({','.join(str(int(number)) for number in only)})")
    if but:
        conditions.add(f"g.group_id NOT IN ({','.join(str(int(number)) for number in but)})")


def order_by(order: str) -> str:
    """Groups without a value come last, equal ones newest first."""
    column = _ORDERS[order.removeprefix("-")]
    return f"ORDER BY {column} {'DESC' if order.startswith('-') else 'ASC'} NULLS LAST, g.place DESC"


def _add_term(conditions: Conditions, term: Term, text_parts: Sequence[int]) -> None:
    if term.field in _NUMBERS:
        relation = "=" if term.relation == ":" else term.relation
        conditions.add(f"({_NUMBERS[term.field]} {relation} ?)", term.number)
    elif term.field in ("outcome", "reason"):
        conditions.add(f"(substr(g.{term.field}, 1, ?) = ?)", len(term.word), term.word)
    elif term.field == "split":
        splits = splits_of(term.word)
        conditions.add(f"(g.split IN ({','.join('?' * len(splits))}))", *splits)
    elif term.field == "finish":
        conditions.add("(instr(g.finishes, ?) > 0)", f",{term.word}")
    elif term.field in ("item", "error"):
        _add_has(conditions, (f"g.{term.field}",), term.word, "")
    else:
        expression = match_expression(f"{term.word}*" if term.relation == "*" else f'"{term.word}"')
        indexes = [f"SELECT rowid FROM text_{part} WHERE text_{part} MATCH ?" for part in text_parts]
        said = f" OR g.content_id IN ({' UNION ALL '.join(indexes)})" if expression and indexes else ""
        _add_has(conditions, ("g.item", "g.error"), term.word, said)
        conditions.values += [expression] * len(indexes) if said else []


def _add_has(conditions: Conditions, columns: Sequence[str], word: str, or_else: str) -> None:
    """LIKE folds the case of ASCII only, and is many times faster than a function of ours."""
    if word.isascii():
        pattern = "".join(f"\\{character}" if character in "\\%_" else character for character in word)
        condition, value = "{} LIKE ? ESCAPE '\\'", f"%{pattern}%"
    else:
        condition, value = "has_text({}, ?)", word
    conditions.add(f"({' OR '.join(map(condition.format, columns))}{or_else})", *[value] * len(columns))


def stored_finishes(finishes: Sequence[str]) -> str:
    """As `,length,stop`, so that the beginning of one can be looked for."""
    return "".join(f",{reason.replace(',', ' ')}" for reason in finishes)


def read_finishes(stored: str) -> tuple[str, ...]:
    return tuple(stored.split(",")[1:])
