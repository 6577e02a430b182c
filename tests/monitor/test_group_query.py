"""The filter language, and orders of groups."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_filter import FIELDS, OF_THE_READER, parse_terms, search_words, sorted_rows
from atropos_tui.monitor.group_query import GroupQuery
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.snapshot import EndedRow
from atropos_tui.monitor.wire import query_params, read_query

DELIVERED = EndedRow(
    group_id=7, at=1.8e9, outcome=Outcome.DELIVERED, reason="received", split="", item="Reverse hiefc",
    scores=(0.0, 1.0), completion_tokens=(10, 20), step=100, seconds=2.0, weight_version=3, finishes=("length", "stop"),
)  # fmt: skip
SKIPPED = replace(
    DELIVERED, group_id=8, outcome=Outcome.SKIPPED, reason="identical_scores", split="all_worst",
    scores=(-1.0, -1.0), step=200, finishes=("stop",),
)  # fmt: skip
FAILED = replace(
    DELIVERED, group_id=9, outcome=Outcome.FAILED, reason="env_error", scores=(), completion_tokens=(),
    error="KeyError: 'answer'", finishes=(), weight_version=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", (True, True, True)),
        ("score<0", (False, True, False)),
        ("score>=0.5", (True, False, False)),
        ("-score<0", (True, False, True)),
        ("best=1", (True, False, False)),
        ("worst!=0", (False, True, False)),
        ("len>14 step<=100", (True, False, False)),
        ("tokens>14 step<=100", (True, False, False)),
        ("weights:3", (True, True, False)),
        ("group>7", (False, True, True)),
        ("outcome:skipped", (False, True, False)),
        ("outcome:sk", (False, True, False)),
        ("-outcome:skipped", (True, False, True)),
        ("reason:identical step>100", (False, True, False)),
        ('reason:"identical scores"', (False, True, False)),
        ("split:all_w", (False, True, False)),
        ("split:too_hard", (False, True, False)),
        ("split:too_easy", (False, False, False)),
        ("finish:length", (True, False, False)),
        ("-finish:stop", (False, False, True)),
        ('item:"REVERSE h"', (True, True, True)),
        ('error:"no such"', (False, False, False)),
        ("keyerror", (False, False, True)),
        ('"hiefc"', (True, True, True)),
        ('-"hiefc"', (False, False, False)),
        ("took>5", (False, False, False)),
        ("score<0 keyerror", (False, False, False)),
    ],
)
def test_a_filter_lets_through_what_it_says(text: str, matches: tuple[bool, bool, bool]) -> None:
    wanted = GroupFilter(terms=parse_terms(text))
    assert (wanted.matches(DELIVERED), wanted.matches(SKIPPED), wanted.matches(FAILED)) == matches


def test_words_are_looked_for_in_the_messages_too() -> None:
    wanted = GroupFilter(terms=parse_terms('zebra -"two lions"'))
    assert wanted.matches(DELIVERED, lambda word: word == "zebra")
    assert not wanted.matches(DELIVERED, lambda word: True)
    assert search_words(wanted.terms) == ("zebra",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scroe<1", "there is no field 'scroe'; the fields are score, best"),
        ("score<low", "score needs a number, not 'low'; for example score<0"),
        ("outcome<skipped", "outcome is a word; write outcome:skipped"),
        ("outcome:skiped", "there is no outcome 'skiped'; there are delivered, skipped"),
        ("reason:identcal", "there is no reason 'identcal'; there are identical_scores"),
        ("bookmarked:yes", "bookmarked has no value; write bookmarked or -bookmarked"),
    ],
)
def test_a_wrong_term_is_named_in_one_line_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_terms(f"step>1 {text}")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_every_field_has_an_example_that_can_be_read() -> None:
    for field in FIELDS:
        (term,) = parse_terms(field.example)
        assert term.field == field.name
    assert {field.name for field in FIELDS} >= OF_THE_READER


def test_a_refusal_of_any_status_is_a_reason() -> None:
    refused = replace(DELIVERED, outcome=Outcome.REFUSED, reason="http_422")
    for text in ("reason:http", "reason:http_422"):
        assert GroupFilter(terms=parse_terms(text)).matches(refused)


@given(st.text(max_size=60))
def test_any_text_is_either_a_filter_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        GroupFilter(terms=parse_terms(text)).matches(DELIVERED)


def test_groups_without_a_value_come_last_in_either_order() -> None:
    rows = [FAILED, SKIPPED, DELIVERED]
    assert sorted_rows(rows, "score") == [SKIPPED, DELIVERED, FAILED]
    assert sorted_rows(rows, "-score") == [DELIVERED, SKIPPED, FAILED]
    assert sorted_rows(rows, "outcome") == [DELIVERED, FAILED, SKIPPED]
    assert sorted_rows(rows, "time") == [DELIVERED, SKIPPED, FAILED]


def test_an_order_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no order 'beauty'.*score"):
        GroupFilter.of(GroupQuery(order="beauty"))


@pytest.mark.parametrize(
    "query",
    [
        GroupQuery(),
        GroupQuery('score<0 "a b" -item:ü&?', "-len", (1, 5), (7,)),
        GroupQuery(only=()),
        GroupQuery(order="time", but=(3, 4)),
    ],
)
def test_a_query_goes_over_the_wire_as_it_is(query: GroupQuery) -> None:
    assert read_query(query_params(query)) == query
