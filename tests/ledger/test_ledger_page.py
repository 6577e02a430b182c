"""The page that explains the outcomes knows every word of the ledger, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
SECTIONS = {
    "On the way": OPEN_OUTCOMES,
    "Delivered": frozenset(DeliveredAs),
    "Skipped": frozenset(SkipReason),
    "Rejected": frozenset(RejectReason),
    "Failed": frozenset(FailReason),
    "Requeued": frozenset(RequeueReason),
}


def test_the_equation_names_every_outcome() -> None:
    (equation,) = re.findall(r"started = (.*)", PAGE)
    assert equation.split(" + ") == [str(outcome) for outcome in Outcome]


@pytest.mark.parametrize("title", SECTIONS)
def test_each_reason_has_its_row(title: str) -> None:
    (section,) = re.findall(rf"^## {title}.*?\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(SECTIONS[title])


def test_the_splits_of_identical_scores_are_explained() -> None:
    assert all(f"`{split}`:" in PAGE for split in ScoreSplit)
