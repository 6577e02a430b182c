"""The filter of the trajectory list."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.ui.filter_language import parse_filter
from tests.ui.recorded import ended_rows

DELIVERED = replace(
    ended_rows(2)[1], item="Reverse hiefc", scores=(0.0, 1.0), completion_tokens=(10, 20), step=100, seconds=2.0
)
SKIPPED = replace(
    DELIVERED, outcome=Outcome.SKIPPED, reason="identical_scores", split="all_worst", scores=(-1.0, -1.0), step=200
)
FAILED = replace(
    DELIVERED, outcome=Outcome.FAILED, reason="env_error", scores=(), completion_tokens=(), error="KeyError: 'answer'"
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", (True, True, True)),
        ("score<0", (False, True, False)),
        ("score>=0.5", (True, False, False)),
        ("best=1", (True, False, False)),
        ("worst!=0", (False, True, False)),
        ("tokens>14 step<=100", (True, False, False)),
        ("outcome:skipped", (False, True, False)),
        ("outcome:sk", (False, True, False)),
        ("-outcome:skipped", (True, False, True)),
        ("reason:identical step>100", (False, True, False)),
        ("split:all_w", (False, True, False)),
        ('item:"REVERSE h"', (True, True, True)),
        ("keyerror", (False, False, True)),
        ('"hiefc"', (True, True, True)),
        ('-"hiefc"', (False, False, False)),
        ("took>5", (False, False, False)),
        ("score<0 keyerror", (False, False, False)),
    ],
)
def test_a_filter_lets_through_what_it_says(text: str, matches: tuple[bool, bool, bool]) -> None:
    wanted = parse_filter(text)
    assert (wanted(DELIVERED), wanted(SKIPPED), wanted(FAILED)) == matches


def test_only_a_whole_and_affirmed_outcome_spares_the_fetching_of_others() -> None:
    assert parse_filter("step>1 outcome:skipped").outcome is Outcome.SKIPPED
    assert parse_filter("-outcome:skipped").outcome is None
    assert parse_filter("outcome:sk").outcome is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scroe<1", "there is no field 'scroe'; the fields are score, best"),
        ("score<low", "score needs a number, not 'low'"),
        ("outcome<skipped", "outcome is a word; write outcome:skipped"),
    ],
)
def test_a_wrong_term_is_named_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_filter(text)
    assert complaint in str(error.value)


@given(st.text(max_size=60))
def test_any_text_is_either_a_filter_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        parse_filter(text)(DELIVERED)
