"""The table of known faults: every row has a test that is there, or says what is still to come."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("table.md")


@dataclass(frozen=True)
class Row:
    """`tests` as `file::name`; `later` says what is still to come, empty for nothing."""

    key: str
    behaviour: str
    tests: tuple[str, ...]
    later: str


def rows() -> list[Row]:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return [parsed(line) for line in lines if not line.startswith("| key ")]


def parsed(line: str) -> Row:
    key, behaviour, covered = (cell.strip() for cell in line.strip("| \n").split(" | "))
    tests, _, later = covered.partition("later:")
    return Row(key, behaviour, tuple(re.findall("`(.*?)`", tests)), later.strip())


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names of a file's test functions, at the top or in classes."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions))


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.is_file() and name in names_in(path)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.key)
def test_a_known_fault_has_a_test_or_says_what_is_to_come(row: Row) -> None:
    assert row.behaviour
    assert row.tests or row.later
    assert [test for test in row.tests if not is_there(test)] == []


def test_every_key_stands_once() -> None:
    keys = [row.key for row in rows()]
    assert len(keys) > 100
    assert len(keys) == len(set(keys))


def test_a_test_that_is_not_there_is_noticed() -> None:
    here = "tests/known_faults/test_fault_table.py"
    row = parsed(
        f"| X1 | right | `{here}::test_every_key_stands_once`, `{here}::test_x`, `tests/no.py::test_x`; later: y |"
    )
    assert [is_there(test) for test in row.tests] == [True, False, False]
    assert row.later == "y"
